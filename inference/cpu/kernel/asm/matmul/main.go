// Command matmul generates the products of the kernel package: with -isa avx2
// those of quantised and of float weights, with -isa vnni those of quantised
// weights for AVX-512 VNNI on 256-bit registers, with -isa vnni512 on 512-bit ones.
package main

import (
	"flag"
	"log"

	. "github.com/mmcloughlin/avo/build"
)

func main() {
	name := flag.String("isa", "avx2", "instruction set: avx2, vnni or vnni512")
	flag.Parse()
	ConstraintExpr("amd64")
	switch *name {
	case "avx2":
		quantised(avx2())
		floats()
	case "vnni":
		quantised(vnni())
	case "vnni512":
		pairs()
	default:
		log.Fatalf("unknown instruction set %q", *name)
	}
	Generate()
}
