package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ragd/inference/cpu"
	"ragd/inference/gguf"
	"ragd/inference/kvcache"
	"ragd/inference/model"
	"ragd/internal/config"
)

// answerBackends starts what the answer model computes on: the CPU, a device, or a row of
// them, of which all but the last are in load.Before.
func (a *App) answerBackends(f *gguf.File, load *model.LoadConfig) (model.Ops, error) {
	host := cpu.Config{Pool: a.threads, CacheType: CacheType(a.cfg.Inference)}
	first, err := a.newBackend(host)
	if err != nil {
		return nil, err
	}
	if _, device := first.(model.RoomOps); !device {
		return first, nil
	}
	stages, err := spread(f, a.cfg.Inference, first, *load, host, a.deviceLost)
	if err != nil {
		return nil, err
	}
	last := len(stages) - 1
	load.Before = stages[:last]
	return stages[last].Ops, nil
}

// spread starts the other devices of the settings, and the CPU where it keeps layers, and
// says how many layers each has: the CPU's come first, then those of the devices in their
// order. Backends without layers are closed, and all of them on an error.
func spread(f *gguf.File, i config.Inference, first model.Ops, load model.LoadConfig, host cpu.Config, lost func(error)) (stages []model.Stage, err error) {
	devices := []model.Ops{first}
	defer func() {
		for at, ops := range devices {
			if err != nil || !slices.ContainsFunc(stages, func(s model.Stage) bool { return s.Ops == ops }) {
				err = errors.Join(err, devices[at].Close())
			}
		}
	}()
	for _, n := range i.DeviceNumbers()[min(1, len(i.DeviceNumbers())):] {
		other := i
		other.Device = fmt.Sprintf("cuda:%d", n)
		ops, err := openDevice(other, lost)
		if err != nil {
			return nil, err
		}
		devices = append(devices, ops)
	}
	counts, left, err := layersOf(f, i, devices, load)
	if err != nil {
		return nil, err
	}
	if left > 0 {
		onCPU, err := cpu.New(host)
		if err != nil {
			return nil, err
		}
		stages = append(stages, model.Stage{Ops: onCPU, Layers: left})
	}
	for at, n := range counts {
		if n > 0 {
			stages = append(stages, model.Stage{Ops: devices[at], Layers: n})
		}
	}
	return stages, nil
}

// roomKept is the share of a device's memory that is left free where layers are taken
// until it is full: for graphs, for what the driver takes besides, and for the steps of
// encoders, whose buffers come with the first texts. It is a guess; nothing on a real
// device was measured.
const roomKept = 64

// layersOf is how many layers each device has and how many are left for the CPU. The last
// device takes as many of the last layers as fit, the one before it of those that are
// left, and so on; without "auto" the first has to take what is left.
func layersOf(f *gguf.File, i config.Inference, devices []model.Ops, load model.LoadConfig) (counts []int, left int, err error) {
	counts = make([]int, len(devices))
	end, wanted := -1, 0
	for at := len(devices) - 1; at >= 0; at-- {
		device := devices[at].(model.RoomOps)
		needs, err := model.NeedsOf(f, device, load)
		if err != nil {
			return nil, 0, err
		}
		if end < 0 {
			end = needs.Layers()
			wanted = end
			if n, ok := i.DeviceLayerCount(); ok {
				wanted = min(n, end)
			}
		}
		n := wanted
		if at > 0 || i.DeviceLayers == config.LayersAuto {
			free, total, err := device.Room()
			if err != nil {
				return nil, 0, err
			}
			n = min(n, needs.Fit(end, free-total/roomKept))
		}
		counts[at] = n
		end, wanted = end-n, wanted-n
	}
	return counts, end, nil
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
	if strings.HasPrefix(places[0].Backend, "cpu/") && len(places) > 1 {
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
	load := model.LoadConfig{Blocks: kvcache.BlocksOf(i.KVCacheTokens), StepTokens: i.StepTokens}
	stages, err := spread(f, i, ops, load, cpu.Config{Threads: i.Threads, CacheType: CacheType(i)}, nil)
	if err != nil {
		return nil, err
	}
	last := len(stages) - 1
	defer func() { err = errors.Join(err, closeBackends(stages[last].Ops, stages[:last])) }()
	first := 0
	for _, s := range stages {
		needs, err := model.NeedsOf(f, s.Ops.(model.SizeOps), load)
		if err != nil {
			return nil, err
		}
		places = append(places, needs.Place(s.Ops.Name(), first, first+s.Layers))
		if err := needs.Check(first, first+s.Layers); err != nil {
			return places, roomHint(err)
		}
		first += s.Layers
	}
	return places, nil
}
