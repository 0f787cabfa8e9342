package deploy_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"gopkg.in/yaml.v3"

	"ragd/internal/config"
)

func project(t *testing.T, env ...string) (*types.Project, error) {
	t.Helper()
	opts, err := cli.NewProjectOptions([]string{filepath.Join("..", "docker-compose.yml")}, cli.WithEnv(env), cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	return opts.LoadProject(context.Background())
}

const keyHash = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"

func TestComposeFile(t *testing.T) {
	p, err := project(t, "RAGD_KEY_HASH="+keyHash)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"postgres", "ragd", "collector", "jaeger", "prometheus", "grafana"} {
		if _, ok := p.Services[name]; !ok {
			t.Errorf("no service %q", name)
		}
	}
	if image := p.Services["postgres"].Image; image != "pgvector/pgvector:pg18" {
		t.Errorf("postgres runs %s", image)
	}
	for _, s := range p.Services {
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeBind {
				if _, err := os.Stat(v.Source); err != nil {
					t.Errorf("%s mounts what is not there: %v", s.Name, err)
				}
			}
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s on %q, not on loopback only", s.Name, port.Published, port.HostIP)
			}
		}
	}
}

func TestComposeNeedsAKey(t *testing.T) {
	if _, err := project(t); err == nil || !strings.Contains(err.Error(), "RAGD_KEY_HASH") {
		t.Errorf("without a key: %v", err)
	}
}

// The settings that compose hands to ragd are settings ragd has.
func TestComposeEnvironmentLoads(t *testing.T) {
	p, err := project(t, "RAGD_KEY_HASH="+keyHash)
	if err != nil {
		t.Fatal(err)
	}
	var environ []string
	for k, v := range p.Services["ragd"].Environment {
		environ = append(environ, k+"="+*v)
	}
	c, err := config.Load("", environ, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Server.Addr != "0.0.0.0:8080" || c.Database.URL == "" || len(c.Server.Keys) != 1 || c.Home != "/var/lib/ragd" {
		t.Errorf("compose's environment did not arrive: %+v", c)
	}
}

// The collector's pipelines name only parts that are configured.
func TestCollectorPipelines(t *testing.T) {
	data, err := os.ReadFile("otel-collector.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Receivers, Processors, Exporters map[string]any
		Service                          struct {
			Pipelines map[string]map[string][]string
		}
	}
	if err := yaml.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	parts := map[string]map[string]any{"receivers": c.Receivers, "processors": c.Processors, "exporters": c.Exporters}
	for name, pipeline := range c.Service.Pipelines {
		for kind, ids := range pipeline {
			for _, id := range ids {
				if _, ok := parts[kind][id]; !ok {
					t.Errorf("pipeline %s: %s %q is not configured", name, kind, id)
				}
			}
		}
	}
	if len(c.Service.Pipelines["traces"]) == 0 {
		t.Error("no traces pipeline")
	}
}
