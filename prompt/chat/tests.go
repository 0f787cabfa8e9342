package chat

import "fmt"

// test is `v is id(a)`.
func (in *interp) test(id string, v value, a arguments) (bool, error) {
	if ok, known := typeTest(id, v); known {
		return ok, nil
	}
	if op := comparison(id); op != "" {
		other, ok := a.get(0, "other")
		if !ok {
			return false, errMissing
		}
		return in.compare(op, v, other)
	}
	switch id {
	case "odd", "even", "divisibleby":
		return divisible(id, v, a)
	case "lower", "upper":
		t, err := in.str(v)
		return t.s != "" && changeCase(id, t).s == t.s, err
	}
	return false, ErrUnsupported
}

// typeTest holds the tests that only look at the type of v.
func typeTest(id string, v value) (ok, known bool) {
	_, _, isInt, isNumber := number(v)
	b, isBool := v.(bool)
	_, isUndefined := v.(undefined)
	_, isText := v.(text)
	_, isList := v.(*list)
	_, isDict := v.(*dict)
	_, isCallable := v.(callable)
	container := isText || isList || isDict || isUndefined
	switch id {
	case "defined":
		return !isUndefined, true
	case "undefined":
		return isUndefined, true
	case "none":
		return v == nil, true
	case "string":
		return isText, true
	case "mapping":
		return isDict, true
	case "iterable", "sequence":
		return container, true
	case "number":
		return isNumber, true
	case "integer":
		return isInt && !isBool, true
	case "float":
		return isNumber && !isInt, true
	case "boolean":
		return isBool, true
	case "true":
		return isBool && b, true
	case "false":
		return isBool && !b, true
	case "callable":
		return isCallable, true
	}
	return false, false
}

// comparison is the operator that a test stands for.
func comparison(id string) string {
	switch id {
	case "equalto", "eq":
		return "=="
	case "ne":
		return "!="
	case "lt", "lessthan":
		return "<"
	case "le":
		return "<="
	case "gt", "greaterthan":
		return ">"
	case "ge":
		return ">="
	case "in":
		return "in"
	}
	return ""
}

func divisible(id string, v value, a arguments) (bool, error) {
	n, _, isInt, ok := number(v)
	if !ok || !isInt {
		return false, fmt.Errorf("%s is no integer", typeName(v))
	}
	by := 2
	if id == "divisibleby" {
		var err error
		if by, err = a.integer(0, "num", 0); err != nil {
			return false, err
		}
	}
	if by == 0 {
		return false, fmt.Errorf("division by zero")
	}
	return (n%int64(by) == 0) != (id == "odd"), nil
}
