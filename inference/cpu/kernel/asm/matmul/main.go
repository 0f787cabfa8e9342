// Command matmul generates the AVX2 products of the kernel package.
package main

import . "github.com/mmcloughlin/avo/build"

func main() {
	ConstraintExpr("amd64")
	quantised()
	floats()
	Generate()
}
