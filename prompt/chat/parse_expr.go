package chat

import (
	"slices"
	"strconv"
)

// expression reads one expression, an inline if included.
func (p *parser) expression() (expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	x, err := p.or()
	for err == nil && p.skip(tokName, "if") {
		c := conditional{then: x}
		if c.cond, err = p.or(); err != nil {
			return nil, err
		}
		if p.skip(tokName, "else") {
			if c.otherwise, err = p.expression(); err != nil {
				return nil, err
			}
		}
		x = c
	}
	return x, err
}

// tuple reads expressions with commas between them: a tuple if there is one.
// An inline if is left to the caller where a statement has an if of its own.
func (p *parser) tuple(inlineIf bool) (expr, error) {
	one := p.or
	if inlineIf {
		one = p.expression
	}
	x, err := one()
	if err != nil || !p.is(tokOp, ",") {
		return x, err
	}
	t := listLit{items: []expr{x}, tuple: true}
	for p.skip(tokOp, ",") {
		if p.tupleEnds() {
			break
		}
		if x, err = one(); err != nil {
			return nil, err
		}
		t.items = append(t.items, x)
	}
	return t, nil
}

func (p *parser) tupleEnds() bool {
	t := p.peek()
	return t.kind == tokVarEnd || t.kind == tokBlockEnd || t.kind == tokOp && t.s == ")"
}

// chain reads left-associative operators of one precedence.
func (p *parser) chain(operand func() (expr, error), kind tokenKind, ops ...string) (expr, error) {
	x, err := operand()
	for err == nil && p.peek().kind == kind && slices.Contains(ops, p.peek().s) {
		op := p.next()
		var y expr
		y, err = operand()
		x = binary{op.line, op.s, x, y}
	}
	return x, err
}

func (p *parser) or() (expr, error)  { return p.chain(p.and, tokName, "or") }
func (p *parser) and() (expr, error) { return p.chain(p.not, tokName, "and") }

func (p *parser) not() (expr, error) {
	if !p.is(tokName, "not") {
		return p.comparison()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	op := p.next()
	x, err := p.not()
	return unary{op.line, "not", x}, err
}

func (p *parser) comparison() (expr, error) {
	x, err := p.sum()
	c := compare{line: p.peek().line, x: x}
	for err == nil {
		op := p.comparator()
		if op == "" {
			break
		}
		var y expr
		y, err = p.sum()
		c.ops, c.ys = append(c.ops, op), append(c.ys, y)
	}
	if len(c.ops) == 0 {
		return x, err
	}
	return c, err
}

// comparator consumes a comparison operator, or returns "".
func (p *parser) comparator() string {
	t := p.peek()
	switch {
	case t.kind == tokOp && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, t.s):
		p.i++
		return t.s
	case p.skip(tokName, "in"):
		return "in"
	case p.is(tokName, "not") && p.toks[p.i+1].kind == tokName && p.toks[p.i+1].s == "in":
		p.i += 2
		return "not in"
	}
	return ""
}

func (p *parser) sum() (expr, error)     { return p.chain(p.joined, tokOp, "+", "-") }
func (p *parser) joined() (expr, error)  { return p.chain(p.product, tokOp, "~") }
func (p *parser) product() (expr, error) { return p.chain(p.filtered, tokOp, "*", "/", "//", "%") }

// filtered is a signed operand with the filters and tests after it.
func (p *parser) filtered() (expr, error) {
	x, err := p.signed()
	if err != nil {
		return nil, err
	}
	if p.is(tokOp, "**") {
		return nil, p.unsupported("operator **")
	}
	return p.postfixFilters(x)
}

func (p *parser) signed() (expr, error) {
	if !p.is(tokOp, "-") && !p.is(tokOp, "+") {
		return p.primary()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	op := p.next()
	x, err := p.signed()
	return unary{op.line, op.s, x}, err
}

// postfixFilters reads `| filter`, `is test` and calls after x.
func (p *parser) postfixFilters(x expr) (expr, error) {
	var err error
	for err == nil {
		switch {
		case p.skip(tokOp, "|"):
			x, err = p.filter(x)
		case p.skip(tokName, "is"):
			x, err = p.test(x)
		default:
			return x, nil
		}
	}
	return nil, err
}

func (p *parser) filter(x expr) (expr, error) {
	f := filter{line: p.peek().line, obj: x}
	var err error
	if f.name, err = p.ident(); err != nil {
		return nil, err
	}
	if p.is(tokOp, "(") {
		f.args, err = p.arguments()
	}
	return f, err
}

func (p *parser) test(x expr) (expr, error) {
	t := test{line: p.peek().line, obj: x, negate: p.skip(tokName, "not")}
	var err error
	if t.name, err = p.ident(); err != nil {
		return nil, err
	}
	if p.is(tokOp, "(") {
		t.args, err = p.arguments()
		return t, err
	}
	if p.operandFollows() {
		arg, err := p.primary()
		t.args.pos = []expr{arg}
		return t, err
	}
	return t, nil
}

// operandFollows says whether a test has an argument without brackets.
func (p *parser) operandFollows() bool {
	switch t := p.peek(); t.kind {
	case tokString, tokInt, tokFloat:
		return true
	case tokName:
		return !slices.Contains([]string{"else", "or", "and", "is", "if", "in", "not", "recursive"}, t.s)
	case tokOp:
		return t.s == "[" || t.s == "{"
	}
	return false
}

// primary is an operand with its attributes, subscripts and calls.
func (p *parser) primary() (expr, error) {
	x, err := p.atom()
	for err == nil {
		line := p.peek().line
		switch {
		case p.skip(tokOp, "."):
			x, err = p.dotted(line, x)
		case p.is(tokOp, "["):
			x, err = p.subscript(x)
		case p.is(tokOp, "("):
			var a args
			a, err = p.arguments()
			x = call{line, x, a}
		default:
			return x, nil
		}
	}
	return nil, err
}

func (p *parser) dotted(line int, obj expr) (expr, error) {
	if t := p.peek(); t.kind == tokInt {
		key, err := p.integer()
		return index{line, obj, key}, err
	}
	id, err := p.ident()
	return attr{line, obj, id}, err
}

func (p *parser) integer() (expr, error) {
	t := p.next()
	n, err := strconv.ParseInt(t.s, 10, 64)
	if err != nil {
		return nil, &Error{Line: t.line, Construct: "number", Err: err}
	}
	return literal{n}, nil
}

func (p *parser) atom() (expr, error) {
	t := p.peek()
	switch t.kind {
	case tokName:
		p.i++
		switch t.s {
		case "true", "True":
			return literal{true}, nil
		case "false", "False":
			return literal{false}, nil
		case "none", "None":
			return literal{nil}, nil
		}
		return name{t.s}, nil
	case tokString:
		s := ""
		for p.peek().kind == tokString {
			s += p.next().s
		}
		return literal{scaffold(s)}, nil
	case tokInt:
		return p.integer()
	case tokFloat:
		p.i++
		f, err := strconv.ParseFloat(t.s, 64)
		return literal{f}, at(t.line, "number", err)
	case tokOp:
		return p.bracketed(t)
	}
	return nil, p.errorf("expected an expression, found %v", t)
}

// bracketed reads a parenthesis, a list or a mapping.
func (p *parser) bracketed(t token) (expr, error) {
	switch t.s {
	case "(":
		p.i++
		if p.skip(tokOp, ")") {
			return listLit{tuple: true}, nil
		}
		x, err := p.tuple(true)
		if err != nil {
			return nil, err
		}
		return x, p.expect(tokOp, ")")
	case "[":
		p.i++
		var l listLit
		err := p.items("]", func() error {
			x, err := p.expression()
			l.items = append(l.items, x)
			return err
		})
		return l, err
	case "{":
		p.i++
		return p.mapping()
	}
	return nil, p.errorf("expected an expression, found %v", t)
}

func (p *parser) mapping() (expr, error) {
	var d dictLit
	err := p.items("}", func() error {
		k, err := p.expression()
		if err != nil {
			return err
		}
		if err := p.expect(tokOp, ":"); err != nil {
			return err
		}
		v, err := p.expression()
		d.keys, d.values = append(d.keys, k), append(d.values, v)
		return err
	})
	return d, err
}

// items reads comma separated items up to the closing bracket.
func (p *parser) items(closing string, item func() error) error {
	for first := true; !p.skip(tokOp, closing); first = false {
		if !first {
			if err := p.expect(tokOp, ","); err != nil {
				return err
			}
			if p.skip(tokOp, closing) {
				return nil
			}
		}
		if err := item(); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) arguments() (args, error) {
	p.i++
	var a args
	err := p.items(")", func() error {
		t := p.peek()
		if t.kind == tokName && p.toks[p.i+1].kind == tokOp && p.toks[p.i+1].s == "=" {
			p.i += 2
			x, err := p.expression()
			a.names, a.named = append(a.names, t.s), append(a.named, x)
			return err
		}
		if len(a.names) > 0 {
			return p.errorf("positional argument after a named one")
		}
		x, err := p.expression()
		a.pos = append(a.pos, x)
		return err
	})
	return a, err
}

// subscript reads [key] or [start:stop:step].
func (p *parser) subscript(obj expr) (expr, error) {
	line := p.next().line
	var parts [3]expr
	n := 0
	for !p.is(tokOp, "]") {
		if p.skip(tokOp, ":") {
			if n++; n > 2 {
				return nil, p.errorf("a slice has three parts at most")
			}
			continue
		}
		if parts[n] != nil {
			return nil, p.errorf("expected ']', found %v", p.peek())
		}
		x, err := p.expression()
		if err != nil {
			return nil, err
		}
		parts[n] = x
	}
	p.i++
	if n > 0 {
		return sliceOf{line, obj, parts[0], parts[1], parts[2]}, nil
	}
	if parts[0] == nil {
		return nil, p.errorf("expected an expression, found ']'")
	}
	return index{line, obj, parts[0]}, nil
}
