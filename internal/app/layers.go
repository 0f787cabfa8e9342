package app

import (
	"errors"
	"fmt"
	"strings"

	"ragd/inference/cpu"
	"ragd/inference/gguf"
	"ragd/inference/model"
	"ragd/internal/config"
)

// answerBackends starts what the answer model computes on: the device or the CPU; or
// both, with the layers of the CPU in load.Before.
func (a *App) answerBackends(f *gguf.File, load *model.LoadConfig) (model.Ops, error) {
	host := cpu.Config{Pool: a.threads, CacheType: CacheType(a.cfg.Inference)}
	ops, err := a.newBackend(host)
	if err != nil {
		return nil, err
	}
	device, ok := ops.(model.RoomOps)
	if !ok {
		return ops, nil
	}
	layers, all, err := deviceLayers(f, a.cfg.Inference, device, *load)
	if err != nil {
		return nil, errors.Join(err, ops.Close())
	}
	if layers == all {
		return ops, nil
	}
	onCPU, err := cpu.New(host)
	if err != nil {
		return nil, errors.Join(err, ops.Close())
	}
	if layers == 0 {
		return onCPU, ops.Close()
	}
	load.Before = []model.Stage{{Ops: onCPU, Layers: all - layers}}
	return ops, nil
}

// roomKept is the share of a device's memory that "auto" leaves free: for graphs, for
// what the driver takes besides, and for the steps of encoders, whose buffers come with
// the first texts. It is a guess; nothing on a real device was measured.
const roomKept = 64

// deviceLayers is how many layers of the model go to the device, of all.
func deviceLayers(f *gguf.File, i config.Inference, device model.RoomOps, load model.LoadConfig) (n, all int, err error) {
	needs, err := model.NeedsOf(f, device, load)
	if err != nil {
		return 0, 0, err
	}
	all = needs.Layers()
	if n, ok := i.DeviceLayerCount(); ok {
		return min(n, all), all, nil
	}
	if i.DeviceLayers == config.LayersAll {
		return all, all, nil
	}
	free, total, err := device.Room()
	return needs.Fit(all, free-total/roomKept), all, err
}

func closeBackends(ops model.Ops, before []model.Stage) error {
	err := ops.Close()
	for _, s := range before {
		err = errors.Join(err, s.Ops.Close())
	}
	return err
}

// roomHint says what can be done where a model does not fit.
func roomHint(err error) error {
	var e *model.RoomError
	if !errors.As(err, &e) {
		return err
	}
	return fmt.Errorf("%w (inference.device_layers=auto keeps the others on the CPU, a smaller inference.kv_cache_tokens leaves room for more)", err)
}

// placesText is where the layers of a model are and, where it is split, what that costs.
func placesText(places []model.Place) string {
	lines := make([]string, len(places))
	for i, p := range places {
		lines[i] = p.String()
	}
	if len(places) > 1 {
		lines = append(lines, fmt.Sprintf("the CPU reads its weights, %.2f GiB, once a step", float64(places[0].Weights)/(1<<30)))
	}
	return strings.Join(lines, "; ")
}

// Layers is where the layers of a decoder would lie with the memory that is free now, by
// the formula and without loading it; none where models run on the CPU only.
func Layers(f *gguf.File, cfg config.Config) (places []model.Place, err error) {
	i := cfg.Inference
	if i.Device == config.DeviceCPU {
		return nil, nil
	}
	ops, err := openDevice(i, nil)
	if err != nil {
		if i.Device == config.DeviceAuto || errors.Is(err, errNotBuilt) {
			err = nil
		}
		return nil, err
	}
	defer func() { err = errors.Join(err, ops.Close()) }()
	onCPU, err := cpu.New(cpu.Config{Threads: i.Threads, CacheType: CacheType(i)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, onCPU.Close()) }()
	return layersOn(f, i, ops, onCPU)
}

func layersOn(f *gguf.File, i config.Inference, ops model.Ops, onCPU *cpu.Backend) ([]model.Place, error) {
	load := model.LoadConfig{Blocks: (i.KVCacheTokens + model.BlockTokens - 1) / model.BlockTokens, StepTokens: i.StepTokens}
	device, ok := ops.(model.RoomOps)
	if !ok {
		return nil, nil
	}
	n, all, err := deviceLayers(f, i, device, load)
	if err != nil {
		return nil, err
	}
	var places []model.Place
	if n < all {
		needs, err := model.NeedsOf(f, onCPU, load)
		if err != nil {
			return nil, err
		}
		places = append(places, needs.Place(onCPU.Name(), 0, all-n))
	}
	if n == 0 {
		return places, nil
	}
	needs, err := model.NeedsOf(f, device, load)
	if err != nil {
		return nil, err
	}
	return append(places, needs.Place(ops.Name(), all-n, all)), roomHint(needs.Check(all-n, all))
}
