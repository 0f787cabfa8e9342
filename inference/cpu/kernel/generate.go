package kernel

// The generators are a module of their own so that avo stays out of ragd's.
//go:generate go -C asm run ./matmul -isa avx2 -out ../matmul_amd64.s -stubs ../matmul_amd64.go -pkg kernel
//go:generate go -C asm run ./matmul -isa vnni -out ../vnni_amd64.s -stubs ../vnni_amd64.go -pkg kernel
//go:generate go -C asm run ./matmul -isa vnni512 -out ../vnni512_amd64.s -stubs ../vnni512_amd64.go -pkg kernel
//go:generate go -C asm run ./attend -isa avx2 -out ../attend_amd64.s -stubs ../attend_amd64.go -pkg kernel
//go:generate go -C asm run ./attend -isa avx512 -out ../attend512_amd64.s -stubs ../attend512_amd64.go -pkg kernel
//go:generate go -C asm run ./vector -out ../vector_amd64.s -stubs ../vector_amd64.go -pkg kernel
