package chat

import (
	"fmt"
	"slices"
)

const (
	maxSource  = 1 << 18 // bytes of a template
	maxNesting = 100     // blocks and brackets inside one another
)

type parser struct {
	toks    []token
	i       int
	nesting int
	loops   int
}

func (p *parser) peek() token { return p.toks[p.i] }

func (p *parser) next() token {
	t := p.toks[p.i]
	if t.kind != tokEOF {
		p.i++
	}
	return t
}

func (p *parser) is(kind tokenKind, s string) bool {
	t := p.peek()
	return t.kind == kind && t.s == s
}

func (p *parser) skip(kind tokenKind, s string) bool {
	if p.is(kind, s) {
		p.i++
		return true
	}
	return false
}

func (p *parser) errorf(format string, args ...any) error {
	return &Error{Line: p.peek().line, Construct: "syntax", Err: fmt.Errorf(format, args...)}
}

func (p *parser) unsupported(construct string) error {
	return &Error{Line: p.peek().line, Construct: construct, Err: ErrUnsupported}
}

func (p *parser) expect(kind tokenKind, s string) error {
	if !p.skip(kind, s) {
		return p.errorf("expected '%s', found %v", s, p.peek())
	}
	return nil
}

func (p *parser) ident() (string, error) {
	t := p.peek()
	if t.kind != tokName {
		return "", p.errorf("expected a name, found %v", t)
	}
	p.i++
	return t.s, nil
}

// enter counts a level of nesting; leave must follow when it returns nil.
func (p *parser) enter() error {
	if p.nesting++; p.nesting > maxNesting {
		return &Error{Line: p.peek().line, Construct: "nesting", Err: ErrLimit}
	}
	return nil
}

func (p *parser) leave() { p.nesting-- }

// body reads statements up to a block tag named by one of ends, whose name is
// consumed and returned. With no ends it reads to the end of the template.
func (p *parser) body(ends ...string) (body, string, error) {
	if err := p.enter(); err != nil {
		return nil, "", err
	}
	defer p.leave()
	var b body
	for {
		t := p.next()
		switch t.kind {
		case tokData:
			b = append(b, data{scaffold(t.s)})
		case tokVarBegin:
			x, err := p.tuple(true)
			if err == nil {
				err = p.expect(tokVarEnd, "}}")
			}
			if err != nil {
				return nil, "", err
			}
			b = append(b, emit{t.line, x})
		case tokBlockBegin:
			word := p.peek()
			if word.kind == tokName && slices.Contains(ends, word.s) {
				p.i++
				return b, word.s, nil
			}
			s, err := p.statement()
			if err != nil {
				return nil, "", err
			}
			b = append(b, s)
		default:
			if t.kind == tokEOF && len(ends) == 0 {
				return b, "", nil
			}
			return nil, "", p.errorf("expected one of %v, found %v", ends, t)
		}
	}
}

func (p *parser) endTag() error { return p.expect(tokBlockEnd, "%}") }

// block reads a body that one tag ends.
func (p *parser) block(end string) (body, error) {
	if err := p.endTag(); err != nil {
		return nil, err
	}
	b, _, err := p.body(end)
	if err != nil {
		return nil, err
	}
	return b, p.endTag()
}

func (p *parser) statement() (stmt, error) {
	word, err := p.ident()
	if err != nil {
		return nil, err
	}
	switch word {
	case "if":
		return p.ifStmt()
	case "for":
		return p.forStmt()
	case "set":
		return p.setStmt()
	case "macro":
		return p.macroStmt()
	case "filter":
		return p.filterStmt()
	case "generation":
		return p.block("endgeneration")
	case "break", "continue":
		return p.jumpStmt(word)
	}
	p.i--
	return nil, p.unsupported("block " + word)
}

func (p *parser) jumpStmt(word string) (stmt, error) {
	if p.loops == 0 {
		return nil, p.errorf("'%s' outside a loop", word)
	}
	to := flowBreak
	if word == "continue" {
		to = flowContinue
	}
	return jump{to}, p.endTag()
}

func (p *parser) ifStmt() (stmt, error) {
	var br branch
	for {
		cond, err := p.tuple(false)
		if err != nil {
			return nil, err
		}
		if err := p.endTag(); err != nil {
			return nil, err
		}
		b, end, err := p.body("elif", "else", "endif")
		if err != nil {
			return nil, err
		}
		br.conds, br.bodies = append(br.conds, cond), append(br.bodies, b)
		switch end {
		case "else":
			br.orElse, err = p.block("endif")
			return br, err
		case "endif":
			return br, p.endTag()
		}
	}
}

func (p *parser) forStmt() (stmt, error) {
	f := loop{line: p.peek().line}
	var err error
	if f.targets, err = p.targets(); err != nil {
		return nil, err
	}
	if err = p.expect(tokName, "in"); err != nil {
		return nil, err
	}
	if f.seq, err = p.tuple(false); err != nil {
		return nil, err
	}
	if p.skip(tokName, "if") {
		if f.cond, err = p.expression(); err != nil {
			return nil, err
		}
	}
	if p.is(tokName, "recursive") {
		return nil, p.unsupported("recursive loop")
	}
	if err = p.endTag(); err != nil {
		return nil, err
	}
	p.loops++
	b, end, err := p.body("else", "endfor")
	p.loops--
	if err != nil {
		return nil, err
	}
	f.body = b
	if end == "else" {
		f.orElse, err = p.block("endfor")
		return f, err
	}
	return f, p.endTag()
}

// targets reads the names that a loop or an assignment binds.
func (p *parser) targets() ([]string, error) {
	paren := p.skip(tokOp, "(")
	var names []string
	for {
		id, err := p.ident()
		if err != nil {
			return nil, err
		}
		names = append(names, id)
		if !p.skip(tokOp, ",") {
			break
		}
	}
	if paren {
		return names, p.expect(tokOp, ")")
	}
	return names, nil
}

func (p *parser) setStmt() (stmt, error) {
	s := set{line: p.peek().line}
	var err error
	if s.targets, err = p.targets(); err != nil {
		return nil, err
	}
	if len(s.targets) == 1 && p.skip(tokOp, ".") {
		if s.attr, err = p.ident(); err != nil {
			return nil, err
		}
	}
	if p.skip(tokOp, "=") {
		if s.x, err = p.tuple(true); err != nil {
			return nil, err
		}
		return s, p.endTag()
	}
	if len(s.targets) != 1 || s.attr != "" {
		return nil, p.errorf("expected '=', found %v", p.peek())
	}
	b := setBlock{line: s.line, target: s.targets[0]}
	if p.is(tokOp, "|") {
		if b.filter, err = p.postfixFilters(blockText{}); err != nil {
			return nil, err
		}
	}
	b.body, err = p.block("endset")
	return b, err
}

func (p *parser) filterStmt() (stmt, error) {
	x, err := p.filter(blockText{})
	if err == nil {
		x, err = p.postfixFilters(x)
	}
	if err != nil {
		return nil, err
	}
	b, err := p.block("endfilter")
	return filterBlock{x, b}, err
}

func (p *parser) macroStmt() (stmt, error) {
	m := macroDef{line: p.peek().line}
	var err error
	if m.name, err = p.ident(); err != nil {
		return nil, err
	}
	if err = p.expect(tokOp, "("); err != nil {
		return nil, err
	}
	for !p.skip(tokOp, ")") {
		if err = p.macroParam(&m); err != nil {
			return nil, err
		}
	}
	// A loop around the macro is not one that its body can leave.
	loops := p.loops
	p.loops = 0
	m.body, err = p.block("endmacro")
	p.loops = loops
	return m, err
}

func (p *parser) macroParam(m *macroDef) error {
	if len(m.params) > 0 {
		if err := p.expect(tokOp, ","); err != nil {
			return err
		}
	}
	id, err := p.ident()
	if err != nil {
		return err
	}
	m.params = append(m.params, id)
	if p.skip(tokOp, "=") {
		x, err := p.expression()
		if err != nil {
			return err
		}
		m.defaults = append(m.defaults, x)
	} else if len(m.defaults) > 0 {
		return p.errorf("parameter %s without default follows one with", id)
	}
	return nil
}
