package chat

// expr is an expression of the template.
type expr interface {
	eval(in *interp) (value, error)
}

// stmt is a statement of the template; it writes to in.out.
type stmt interface {
	exec(in *interp) (flow, error)
}

// flow says how a statement ended.
type flow uint8

const (
	flowNext flow = iota
	flowBreak
	flowContinue
)

type (
	literal struct{ v value }
	name    struct{ id string }
	listLit struct {
		items []expr
		tuple bool
	}
	dictLit struct{ keys, values []expr }
	attr    struct {
		line int
		obj  expr
		name string
	}
	index struct {
		line     int
		obj, key expr
	}
	sliceOf struct {
		line                   int
		obj, start, stop, step expr // nil where left out
	}
	args struct {
		pos   []expr
		names []string // keyword arguments
		named []expr
	}
	call struct {
		line int
		fn   expr
		args args
	}
	filter struct {
		line int
		name string
		obj  expr // nil in a filter block
		args args
	}
	test struct {
		line   int
		name   string
		negate bool
		obj    expr
		args   args
	}
	unary struct {
		line int
		op   string
		x    expr
	}
	binary struct {
		line int
		op   string
		x, y expr
	}
	compare struct {
		line int
		x    expr
		ops  []string
		ys   []expr
	}
	conditional struct{ cond, then, otherwise expr } // otherwise may be nil
)

type (
	body []stmt
	data struct{ t text }
	emit struct {
		line int
		x    expr
	}
	branch struct {
		conds  []expr
		bodies []body
		orElse body
	}
	loop struct {
		line         int
		targets      []string
		seq, cond    expr // cond may be nil
		body, orElse body
	}
	jump struct{ to flow }
	set  struct {
		line    int
		targets []string
		attr    string // of a namespace, when not empty
		x       expr
	}
	setBlock struct {
		line   int
		target string
		filter expr // over blockText, or nil
		body   body
	}
	filterBlock struct {
		filter expr
		body   body
	}
	macroDef struct {
		line     int
		name     string
		params   []string
		defaults []expr // for the last len(defaults) parameters
		body     body
	}
	blockText struct{} // the text of the block a filter is applied to
)
