package kernel

import "golang.org/x/sys/cpu"

// nativeSets are the assembly sets this CPU can run, the fastest last.
func nativeSets() []*Set {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasFMA || !cpu.X86.HasF16C {
		return nil
	}
	sets := []*Set{avx2()}
	x := &cpu.X86
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512VNNI {
		sets = append(sets, avx512vnni())
	}
	return sets
}
