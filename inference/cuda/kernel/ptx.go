//go:build cuda && cgo

package kernel

import _ "embed"

// PTX is all kernels, from kernels.cu.
//
//go:embed kernels.ptx
var PTX string

// TensorPTX is the kernels that use tensor cores, from tensor.cu. It needs compute
// capability TensorMajor.0 or later.
//
//go:embed tensor.ptx
var TensorPTX string

// TensorMajor is the major compute capability that TensorPTX is compiled for.
const TensorMajor = 8
