package config

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/structs"
	"github.com/knadh/koanf/v2"
)

const (
	delimiter = "."
	envPrefix = "RAGD_"
)

// Load reads the settings: defaults, then the YAML file (if path is not empty),
// then environment variables (RAGD_SERVER_ADDR for server.addr), then flags
// (dotted keys). A key that does not exist is an error that names it.
func Load(path string, environ []string, flags map[string]any) (Config, error) {
	k := koanf.New(delimiter)
	if err := k.Load(structs.Provider(Default(), "koanf"), nil); err != nil {
		return Config{}, fmt.Errorf("config: defaults: %w", err)
	}
	known := k.Keys()
	if path != "" {
		if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return Config{}, fmt.Errorf("config: no such file: %s", path)
			}
			return Config{}, fmt.Errorf("config: %s: %w", path, err)
		}
	}
	if err := k.Load(environment(environ, known), nil); err != nil {
		return Config{}, fmt.Errorf("config: environment: %w", err)
	}
	if err := k.Load(confmap.Provider(flags, delimiter), nil); err != nil {
		return Config{}, fmt.Errorf("config: flags: %w", err)
	}
	return decode(k)
}

// environment maps RAGD_SERVER_MAX_BODY_BYTES to server.max_body_bytes by
// looking the name up among the known keys; other RAGD_ variables belong to
// somebody else and are left alone.
func environment(environ, known []string) koanf.Provider {
	keys := make(map[string]string, len(known))
	for _, key := range known {
		keys[envPrefix+strings.ToUpper(strings.ReplaceAll(key, delimiter, "_"))] = key
	}
	return env.Provider(delimiter, env.Opt{
		Prefix:        envPrefix,
		EnvironFunc:   func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) { return keys[name], value },
	})
}

func decode(k *koanf.Koanf) (Config, error) {
	var c Config
	err := k.UnmarshalWithConf("", &c, koanf.UnmarshalConf{
		DecoderConfig: &mapstructure.DecoderConfig{
			TagName: "koanf", Result: &c, ErrorUnused: true, WeaklyTypedInput: true,
			DecodeHook: mapstructure.ComposeDecodeHookFunc(mapstructure.StringToTimeDurationHookFunc(), mapstructure.StringToSliceHookFunc(","), noFractions),
		},
	})
	if err != nil {
		return Config{}, fmt.Errorf("config: %w", err)
	}
	return c, c.Validate()
}

// noFractions refuses 1.5 for a whole number, which weak typing would cut to 1.
func noFractions(from, to reflect.Type, v any) (any, error) {
	f, ok := v.(float64)
	if ok && to.Kind() >= reflect.Int && to.Kind() <= reflect.Uint64 && f != float64(int64(f)) {
		return nil, fmt.Errorf("%v is not a whole number", f)
	}
	return v, nil
}
