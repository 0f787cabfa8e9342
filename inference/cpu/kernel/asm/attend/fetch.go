package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// fetch emits the function that brings whole runs of keys into the cache.
func (s *source) fetch() {
	emit.Begin("avx2Fetch"+s.name,
		fmt.Sprintf("func(k *%s, runs *int, count, dim int)", s.goType),
		"brings count runs of 16 keys into the cache.")
	run, count, n := emit.Ptr("runs"), emit.Ptr("count"), GP64()
	Label("run")
	p := s.at("k", emit.At(run))
	MOVQ(emit.Arg("dim"), n)
	Label("fetch") // dim is a multiple of eight
	fetch(p, 8*blockRows<<s.shift)
	SUBQ(Imm(8), n)
	JNZ(LabelRef("fetch"))
	ADDQ(Imm(runBytes), run)
	DECQ(count)
	JNZ(LabelRef("run"))
	emit.End()
}

// fetch brings some bytes at p into the cache and moves it behind them.
func fetch(p reg.GPVirtual, bytes int) {
	for at := 0; at < bytes; at += 64 {
		PREFETCHT0(Mem{Base: p, Disp: at})
	}
	ADDQ(U32(uint32(bytes)), p)
}

// at is where the run begins whose description lies at run, in the keys or values.
func (s *source) at(arg string, run Mem) reg.GPVirtual {
	p := loaded(run)
	SHLQ(Imm(uint64(s.shift)), p)
	ADDQ(emit.Arg(arg), p)
	return p
}
