// Command dashboards writes the Grafana dashboard of ragd to the standard
// output. It is a module of its own so that Grafana's SDK is no dependency of
// ragd.
//
//	go run . > ../grafana/dashboards/ragd.json
//	go run . -rules > expressions.yml   # every query as a rule, for promtool
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	asRules := flag.Bool("rules", false, "write every query as a recording rule, variables filled in")
	flag.Parse()
	write := writeDashboard
	if *asRules {
		write = writeRules
	}
	if err := write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func writeDashboard(w io.Writer) error {
	d, err := ragd().Build()
	if err != nil {
		return fmt.Errorf("build the dashboard: %w", err)
	}
	data, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("write the dashboard: %w", err)
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// writeRules writes JSON, which is YAML.
func writeRules(w io.Writer) error {
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	type group struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	}
	exprs, err := expressions()
	if err != nil {
		return err
	}
	g := group{Name: "dashboard"}
	for i, e := range exprs {
		g.Rules = append(g.Rules, rule{fmt.Sprintf("dashboard:query_%d", i+1), strings.ReplaceAll(e, "$__rate_interval", "5m")})
	}
	return json.NewEncoder(w).Encode(map[string][]group{"groups": {g}})
}

// expressions are the queries of all panels.
func expressions() ([]string, error) {
	var b bytes.Buffer
	if err := writeDashboard(&b); err != nil {
		return nil, err
	}
	var d struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b.Bytes(), &d); err != nil {
		return nil, fmt.Errorf("read the dashboard back: %w", err)
	}
	var out []string
	for _, p := range d.Panels {
		for _, t := range p.Targets {
			out = append(out, t.Expr)
		}
	}
	return out, nil
}
