// Package cuda is the backend of an NVIDIA GPU: model.Ops over kernels of its own
// (package kernel), through the CUDA driver opened at run time (package cudrv). It is
// compiled with the build tag cuda only.
//
// A step is recorded and then run: the methods of Ops put launches on a list, and the
// one that returns results sends the step's small tables to the device, queues the
// list on one stream, fetches the results and waits. Everything the device is asked
// happens on one goroutine that keeps its thread.
//
// Results do not depend on how a prompt was cut into pieces or on what else is in a
// batch: every output element is reduced in one order, whatever the launch.
package cuda
