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

// HalfPTX is the products in half precision on tensor cores, from half.cu; it needs what
// TensorPTX needs.
//
//go:embed half.ptx
var HalfPTX string

// AttendTensorPTX is attention on tensor cores, from attend_tensor.cu, for the same devices.
//
//go:embed attend_tensor.ptx
var AttendTensorPTX string

// TensorMajor is the major compute capability that TensorPTX, HalfPTX and AttendTensorPTX
// are compiled for.
const TensorMajor = 8
