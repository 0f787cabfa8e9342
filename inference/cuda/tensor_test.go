//go:build cuda && cgo

package cuda

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"ragd/inference/cuda/cudrv"
	"ragd/inference/cuda/kernel"
)

// onCapability makes the simulated device one of that compute capability. 8.0 multiplies
// quantised matrices in half precision on tensor cores, 8.6 in int8.
func onCapability(t *testing.T, c string) { t.Setenv("RAGD_SIM_CAPABILITY", c) }

func onTensorCores(t *testing.T) { onCapability(t, "8.0") }

// Products on tensor cores have the plain kernels' bits, for every quantised format and
// for numbers of weight rows, blocks and activation rows around what a tile, an mma and
// a round of the warps take.
func TestTensorProductsMatchPlain(t *testing.T) {
	onCapability(t, "8.6")
	inBothOrders(t, func(t *testing.T) {
		b := newBackend(t)
		if !b.tensor {
			t.Fatal("the device has no tensor cores")
		}
		rng := rand.New(rand.NewPCG(21, 22))
		for _, typ := range allTypes[3:] {
			for _, shape := range [][2]int{{1, 1}, {17, 9}, {70, 33}, {130, 5}} {
				rows, cols := shape[0], shape[1]*max(32, typ.BlockSize()/2)
				cols = ceil(cols, typ.BlockSize()) * typ.BlockSize()
				data := randomWeights(t, rng, typ, rows, cols)
				m := loadMatrix(t, b, typ, rows, cols, data)
				x := random(rng, 41*cols)
				b.tensorFrom = 1 << 20
				want := runProduct(t, b, m, x, 41)
				if d := worst(want, portableProduct(t, typ, rows, cols, 41, data, x)); d > 2e-6 {
					t.Errorf("%s %d × %d: the plain kernel is off by %g", typ, rows, cols, d)
				}
				b.tensorFrom = 1
				for _, n := range []int{41, 32, 9, 1} {
					if got := runProduct(t, b, m, x[:n*cols], n); !slices.Equal(got, want[:n*rows]) {
						t.Errorf("%s %d × %d, %d rows: other bits than the plain kernel's, off by %g", typ, rows, cols, n, worst(got, want[:n*rows]))
					}
				}
			}
		}
	})
}

// A product on tensor cores with a bias, added to what is there.
func TestTensorProductsAdd(t *testing.T) {
	onCapability(t, "8.6")
	checkResidual(t, 37)
}

// Devices before 8.0 get no kernels for tensor cores, and would refuse them.
func TestNoTensorCores(t *testing.T) {
	b := newBackend(t)
	if b.tensor {
		t.Error("tensor cores at compute capability 7.0")
	}
	err := b.device.Do(func() error { _, err := cudrv.LoadPTX(kernel.TensorPTX); return err })
	var e *cudrv.Error
	if !errors.As(err, &e) {
		t.Errorf("the error is %v", err)
	}
}
