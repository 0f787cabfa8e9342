package kernel_test

import (
	"encoding/binary"
	"fmt"

	"ragd/inference/cpu/kernel"
)

// A matrix of one row of Q8_0 weights (scale 0.5, codes 0 to 31) times a vector
// of ones.
func Example() {
	row := binary.LittleEndian.AppendUint16(nil, 0x3800) // 0.5
	for i := range 32 {
		row = append(row, byte(i))
	}
	w, err := kernel.Pack(kernel.Q8_0, 1, 32, row)
	if err != nil {
		fmt.Println(err)
		return
	}
	x := make([]float32, 32)
	for i := range x {
		x[i] = 1
	}
	set := kernel.Best()
	var a kernel.Acts
	a.Resize(1, 32)
	set.Quantize(&a, 0, x)
	y := make([]float32, 1)
	set.MatMul(y, 1, &a, 0, 1, w, 0, 1)
	fmt.Printf("%.3f\n", y[0])
	// Output: 248.000
}
