package sample

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
)

// types are all a schema may name.
var types = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

// typed compiles a schema by its types; without a type it has them all.
func (c *compiler) typed(m members, path string) (*node, error) {
	if len(m) == 0 {
		return c.whatever(), nil
	}
	names, err := typeNames(m.get("type"), path)
	if err != nil {
		return nil, err
	}
	out := c.add(node{kind: kindUnion})
	for _, name := range names {
		n, err := c.oneType(name, m, path)
		if err != nil {
			return nil, err
		}
		out.any = append(out.any, n)
	}
	return out, nil
}

func typeNames(raw json.RawMessage, path string) ([]string, error) {
	var one string
	var many []string
	switch {
	case raw == nil:
		return slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "integer" }), nil
	case json.Unmarshal(raw, &one) == nil:
		many = []string{one}
	case json.Unmarshal(raw, &many) != nil || len(many) == 0:
		return nil, &SchemaError{path, `"type" must be a name or a list of names`}
	}
	for _, t := range many {
		if !slices.Contains(types, t) {
			return nil, &SchemaError{path, fmt.Sprintf(`"type" %q is not one of %v`, t, types)}
		}
	}
	return many, nil
}

func (c *compiler) oneType(name string, m members, path string) (*node, error) {
	switch name {
	case "object":
		return c.object(m, path)
	case "array":
		return c.array(m, path)
	case "string":
		least, most, err := counts(m, "minLength", "maxLength", path)
		return c.add(node{kind: kindString, min: least, max: most}), err
	case "boolean":
		return c.add(node{kind: kindWords, words: []string{"false", "true"}}), nil
	case "null":
		return c.add(node{kind: kindWords, words: []string{"null"}}), nil
	}
	return c.number(name == "integer", m, path)
}

// whatever is any value.
func (c *compiler) whatever() *node {
	if c.anything != nil {
		return c.anything
	}
	c.anything = c.add(node{kind: kindUnion})
	c.anything.any = []*node{
		c.add(node{kind: kindObject, values: c.anything, max: unlimited}),
		c.add(node{kind: kindArray, items: c.anything, max: unlimited}),
		c.add(node{kind: kindString, max: unlimited}),
		c.add(node{kind: kindNumber}),
		c.add(node{kind: kindWords, words: []string{"false", "null", "true"}}),
	}
	return c.anything
}

func (c *compiler) object(m members, path string) (*node, error) {
	n := c.add(node{kind: kindObject, max: unlimited})
	var required []string
	if raw := m.get("required"); raw != nil && json.Unmarshal(raw, &required) != nil {
		return nil, &SchemaError{path, `"required" must be a list of names`}
	}
	extra := c.whatever()
	if raw := m.get("additionalProperties"); raw != nil {
		var err error
		if extra, err = c.schema(raw, path+"/additionalProperties"); err != nil {
			return nil, err
		}
	}
	props := m.get("properties")
	if props == nil && len(required) == 0 {
		n.values = extra
		return n, nil
	}
	if props == nil {
		props = json.RawMessage("{}")
	}
	return n, c.properties(n, props, required, extra, path)
}

// properties lists those of the schema in its order, then the required ones that
// it does not describe.
func (c *compiler) properties(n *node, raw json.RawMessage, required []string, extra *node, path string) error {
	list, err := parseMembers(raw)
	if err != nil {
		return &SchemaError{path + "/properties", err.Error()}
	}
	for _, p := range list {
		value, err := c.schema(p.value, path+"/properties/"+escapePointer(p.key))
		if err != nil {
			return err
		}
		if err := n.property(p.key, value, slices.Contains(required, p.key)); err != nil {
			return err
		}
	}
	for i, name := range required {
		if list.get(name) == nil && !slices.Contains(required[:i], name) {
			if err := n.property(name, extra, true); err != nil {
				return err
			}
		}
	}
	return nil
}

func (n *node) property(name string, value *node, required bool) error {
	text, err := encoded(name)
	n.props = append(n.props, property{text, value, required})
	return err
}

func (c *compiler) array(m members, path string) (n *node, err error) {
	n = c.add(node{kind: kindArray})
	if n.min, n.max, err = counts(m, "minItems", "maxItems", path); err != nil {
		return nil, err
	}
	if raw := m.get("uniqueItems"); raw != nil && string(bytes.TrimSpace(raw)) != "false" {
		return nil, &SchemaError{path, `keyword "uniqueItems" is not supported`}
	}
	if raw := m.get("prefixItems"); raw != nil {
		if n.prefix, err = c.list("prefixItems", raw, path); err != nil {
			return nil, err
		}
	}
	n.items = c.whatever()
	if raw := m.get("items"); raw != nil {
		if n.items, err = c.schema(raw, path+"/items"); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// counts reads a pair of limits that are whole numbers.
func counts(m members, least, most, path string) (lo, hi int, err error) {
	hi = unlimited
	for key, to := range map[string]*int{least: &lo, most: &hi} {
		raw := m.get(key)
		if raw == nil {
			continue
		}
		var v float64
		if json.Unmarshal(raw, &v) != nil || v < 0 || v != float64(int64(v)) || v >= unlimited {
			return 0, 0, &SchemaError{path, fmt.Sprintf("%q must be a whole number, 0 to %d", key, unlimited-1)}
		}
		*to = int(v)
	}
	return lo, hi, nil
}

// digits is how many a number has at the most, fraction included.
const digits = 15

// number compiles an integer, or a number; one without bounds may have an exponent.
func (c *compiler) number(integer bool, m members, path string) (*node, error) {
	bounds := map[string]*big.Rat{}
	for _, key := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} {
		raw := m.get(key)
		if raw == nil {
			continue
		}
		v, ok := rational(raw)
		if !ok {
			return nil, &SchemaError{path, fmt.Sprintf("%q must be a number of at most %d digits", key, digits)}
		}
		bounds[key] = v
	}
	if !integer && len(bounds) == 0 {
		return c.add(node{kind: kindNumber}), nil
	}
	n := c.add(node{kind: kindBounded, scale: 6})
	if integer {
		n.scale = 0
	}
	return n, n.bound(bounds, path)
}

// rational reads a JSON number of a size that can be bounded by.
func rational(raw json.RawMessage) (*big.Rat, bool) {
	var v json.Number
	if raw[0] == '"' || json.Unmarshal(raw, &v) != nil || len(v) > 40 {
		return nil, false
	}
	f, err := v.Float64()
	switch {
	case err != nil || f > 1e15 || f < -1e15:
		return nil, false
	case f < 1e-30 && f > -1e-30:
		return new(big.Rat).SetFloat64(f), true // only its sign matters; an exponent may be huge
	}
	return new(big.Rat).SetString(string(v))
}

// bound sets the bounds in units of the last digit. Large bounds leave fewer digits
// behind the point.
func (n *node) bound(bounds map[string]*big.Rat, path string) error {
	limit := power(digits)
	for _, v := range bounds {
		for n.scale > 0 && new(big.Rat).Abs(v).Cmp(new(big.Rat).SetInt64(power(digits-n.scale))) >= 0 {
			n.scale--
		}
	}
	n.lo, n.hi = -(limit - 1), limit-1
	for key, v := range bounds {
		scaled := new(big.Rat).Mul(v, new(big.Rat).SetInt64(power(n.scale)))
		floor := new(big.Int).Div(scaled.Num(), scaled.Denom()) // rounds down: the denominator is positive
		down, exact := floor.Int64(), scaled.IsInt()
		up := down
		if !exact {
			up++
		}
		switch key {
		case "minimum":
			n.lo = max(n.lo, up)
		case "exclusiveMinimum":
			n.lo = max(n.lo, down+1)
		case "maximum":
			n.hi = min(n.hi, down)
		case "exclusiveMaximum":
			n.hi = min(n.hi, up-1)
		}
	}
	if n.lo > n.hi {
		return &SchemaError{path, fmt.Sprintf("no number of at most %d digits lies within the bounds", digits)}
	}
	return nil
}

func power(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}
