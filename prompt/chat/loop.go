package chat

// loopState is the variable loop inside a for.
type loopState struct {
	items []value
	i     int
}

func (l loopState) member(id string) value {
	switch id {
	case "index":
		return int64(l.i) + 1
	case "index0":
		return int64(l.i)
	case "revindex":
		return int64(len(l.items) - l.i)
	case "revindex0":
		return int64(len(l.items) - l.i - 1)
	case "first":
		return l.i == 0
	case "last":
		return l.i == len(l.items)-1
	case "length":
		return int64(len(l.items))
	case "previtem":
		if l.i > 0 {
			return l.items[l.i-1]
		}
	case "nextitem":
		if l.i+1 < len(l.items) {
			return l.items[l.i+1]
		}
	}
	return undefined{"loop." + id}
}
