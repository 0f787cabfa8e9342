package kernel

import "golang.org/x/sys/cpu"

// nativeSets are the assembly sets this CPU can run, the fastest last.
func nativeSets() []*Set {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasFMA || !cpu.X86.HasF16C {
		return nil
	}
	return []*Set{avx2()}
}

// avx2 needs AVX2, FMA and F16C.
func avx2() *Set {
	s := Portable()
	s.Name = "avx2"
	s.MatMul = avx2MatMul
	s.MatMulF32 = avx2MatMulF32
	return s
}
