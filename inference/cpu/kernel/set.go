package kernel

// Best is the fastest set that this CPU can run.
func Best() *Set {
	sets := Sets()
	return sets[len(sets)-1]
}

// Sets are all sets that this CPU can run, the portable one first, the fastest last.
func Sets() []*Set { return append([]*Set{Portable()}, nativeSets()...) }
