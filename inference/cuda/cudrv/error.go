//go:build cuda && cgo

package cudrv

import (
	"errors"
	"slices"

	"gorgonia.org/cu"
)

var (
	// ErrUnavailable says that there is no driver to use, and why.
	ErrUnavailable = errors.New("CUDA is not available")
	// ErrMemory says that the device has not enough free memory.
	ErrMemory = errors.New("out of device memory")
	// ErrLost says that the context is broken: every later call fails too, and
	// only a new Device helps.
	ErrLost = errors.New("the device is lost")
	// ErrClosed says that the Device was closed.
	ErrClosed = errors.New("the device is closed")
)

// Error is a driver call that failed. It matches ErrMemory and ErrLost by its
// code, and unwraps to gorgonia.org/cu's.
type Error struct {
	Op  string
	Err error
}

func (e *Error) Error() string { return "cuda: " + e.Op + ": " + e.Err.Error() }

// Unwrap is the code.
func (e *Error) Unwrap() error { return e.Err }

// lost are the codes after which a context answers nothing else ("sticky errors"
// of the driver interface's documentation).
var lost = []error{
	cu.IllegalAddress, cu.LaunchFailed, cu.LaunchTimeout, cu.EccUncorrectable, cu.HardwareStackError, cu.IllegalInstruction,
	cu.MisalignedAddress, cu.InvalidAddressSpace, cu.InvalidPc, cu.NvlinkUncorrectable, cu.ContextIsDestroyed, cu.Assert,
}

// Is sorts codes into ErrMemory and ErrLost.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrMemory:
		return e.Err == cu.OutOfMemory
	case ErrLost:
		return slices.Contains(lost, e.Err)
	}
	return false
}

// failed names the operation of an error; nil stays nil.
func failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Err: err}
}
