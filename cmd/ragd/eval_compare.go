package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"ragd/internal/eval"
)

// maxReport bounds the size of a report that is read.
const maxReport = 1 << 30

// compareRuns says what changed between two reports.
func (o *options) compareRuns(cmd *cobra.Command, before, after string) error {
	var reports [2]*eval.Report
	for i, path := range []string{before, after} {
		var err error
		if reports[i], err = readReport(path); err != nil {
			return err
		}
	}
	c, err := eval.Compare(reports[0], reports[1])
	if err != nil {
		return err
	}
	if o.json {
		return printJSON(cmd.OutOrStdout(), c)
	}
	printComparison(cmd.OutOrStdout(), c)
	return nil
}

func readReport(path string) (*eval.Report, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxReport {
		return nil, fmt.Errorf("%s: not a report: %d bytes, at most %d are read", path, info.Size(), maxReport)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &eval.Report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: not a report of ragd eval: %w", path, err)
	}
	return r, nil
}
