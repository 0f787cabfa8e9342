package main

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// committed is the file that Grafana is provisioned with.
const committed = "../grafana/dashboards/ragd.json"

func TestCommittedDashboardIsCurrent(t *testing.T) {
	var want bytes.Buffer
	if err := writeDashboard(&want); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not what the generator writes: run make dashboards", committed)
	}
}

// strict reads a dashboard as Grafana's schema has it. The SDK's success is a
// typed nil, so its length is what counts.
func strict(t *testing.T, data []byte) []error {
	t.Helper()
	plugins.RegisterDefaultPlugins()
	var d dashboard.Dashboard
	var problems []error
	for _, err := range []error{d.UnmarshalJSONStrict(data), d.Validate()} {
		if err == nil {
			continue
		}
		if v := reflect.ValueOf(err); v.Kind() == reflect.Slice && v.Len() == 0 {
			continue
		}
		problems = append(problems, err)
	}
	return problems
}

func TestDashboardFitsTheSchema(t *testing.T) {
	data, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range strict(t, data) {
		t.Error(err)
	}
	// A field that is misspelt must be noticed, in a query and in a panel.
	for _, typo := range []struct{ from, to string }{{`"expr"`, `"exprs"`}, {`"legendFormat"`, `"legendFromat"`}, {`"fieldConfig"`, `"fieldConfigs"`}} {
		broken := bytes.Replace(data, []byte(typo.from), []byte(typo.to), 1)
		if len(strict(t, broken)) == 0 {
			t.Errorf("%s in place of %s was not noticed", typo.to, typo.from)
		}
	}
}

func TestEveryPanelAsksAndExplains(t *testing.T) {
	d, err := ragd().Build()
	if err != nil {
		t.Fatal(err)
	}
	panels := 0
	for _, p := range d.Panels {
		if p.Panel == nil || p.Panel.Type == "row" {
			continue
		}
		panels++
		if len(p.Panel.Targets) == 0 || p.Panel.Description == nil || *p.Panel.Description == "" || p.Panel.Datasource == nil {
			t.Errorf("panel %q has no query, no description or no data source", *p.Panel.Title)
		}
	}
	exprs, err := expressions()
	if err != nil {
		t.Fatal(err)
	}
	if panels < 20 || len(exprs) < panels {
		t.Errorf("%d panels with %d queries", panels, len(exprs))
	}
	for _, e := range exprs {
		if strings.Count(e, "(") != strings.Count(e, ")") {
			t.Errorf("brackets: %s", e)
		}
	}
}
