//go:build cuda && cgo

package kernel

import _ "embed"

// PTX is all kernels, from kernels.cu.
//
//go:embed kernels.ptx
var PTX string
