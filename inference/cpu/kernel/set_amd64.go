package kernel

import "golang.org/x/sys/cpu"

// nativeSets are the assembly sets this CPU can run, the fastest last.
func nativeSets() []*Set {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasFMA || !cpu.X86.HasF16C {
		return nil
	}
	sets := []*Set{avx2()}
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512VNNI {
		sets = append(sets, avx512vnni())
	}
	return sets
}
