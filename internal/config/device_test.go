package config

import (
	"errors"
	"testing"
)

func TestDevices(t *testing.T) {
	for device, want := range map[string]int{"cuda:0": 0, "cuda:7": 7, "cuda:63": 63, "cuda:2,cuda:0": 2, "auto": -1, "cpu": -1} {
		c := Default()
		c.Inference.Device = device
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", device, err)
		}
		n, ok := c.Inference.DeviceNumber()
		if !ok {
			n = -1
		}
		if n != want {
			t.Errorf("%s is device %d, not %d", device, n, want)
		}
	}
	for _, device := range []string{"", "gpu", "cuda", "cuda:", "cuda:-1", "cuda:64", "cuda:01", "cuda:+1", "CUDA:0", "cuda:0 ", "cuda:0,cuda:0", "cuda:0,", "cuda:0,cpu", "cuda:0, cuda:1"} {
		c := Default()
		c.Inference.Device = device
		var fe *FieldError
		if err := c.Validate(); !errors.As(err, &fe) || fe.Field != "inference.device" {
			t.Errorf("%q: %v", device, err)
		}
	}
}

func TestDeviceLayers(t *testing.T) {
	for layers, want := range map[string]int{"all": -1, "auto": -1, "0": 0, "12": 12} {
		c, err := Load("", []string{"RAGD_INFERENCE_DEVICE_LAYERS=" + layers}, nil)
		if err != nil {
			t.Errorf("%s: %v", layers, err)
		}
		n, ok := c.Inference.DeviceLayerCount()
		if !ok {
			n = -1
		}
		if n != want {
			t.Errorf("%s is %d layers, not %d", layers, n, want)
		}
	}
	c, err := Load("", nil, map[string]any{"inference.device_layers": 7})
	if n, ok := c.Inference.DeviceLayerCount(); err != nil || !ok || n != 7 {
		t.Errorf("a number in place of text: %d, %v", n, err)
	}
	for _, layers := range []string{"-1", "some", "1.5", "", "+3", "03"} {
		c := Default()
		c.Inference.DeviceLayers = layers
		var fe *FieldError
		if err := c.Validate(); !errors.As(err, &fe) || fe.Field != "inference.device_layers" {
			t.Errorf("%q: %v", layers, err)
		}
	}
}
