package kernel

import "golang.org/x/sys/cpu"

// nativeSets are the assembly sets this CPU can run, the fastest last.
func nativeSets() []*Set {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasFMA || !cpu.X86.HasF16C {
		return nil
	}
	return []*Set{avx2()}
}
