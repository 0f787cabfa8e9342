package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ragd/internal/config"
	"ragd/internal/modelstore"
)

// starter names what a fresh machine needs.
const starter = "starter"

func (o *options) models() (config.Config, *modelstore.Store, error) {
	cfg, err := o.config()
	if err != nil {
		return cfg, nil, err
	}
	home := cfg.Home
	if home == "" {
		if home, err = modelstore.Home(); err != nil {
			return cfg, nil, err
		}
	}
	return cfg, modelstore.Open(home), nil
}

func newPull(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "pull MODEL...", Short: "Fetch models into the data folder",
		Long: "Fetch models into the data folder: a name from `ragd models`, hf:OWNER/REPO/FILE.gguf from the Hugging Face hub, " +
			"or starter for the private PostgreSQL and the configured models.",
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, names []string) error {
			cfg, store, err := o.models()
			if err != nil {
				return err
			}
			for _, name := range names {
				set := []string{name}
				if name == starter {
					set = []string{"postgres", cfg.Models.Embedding, cfg.Models.Answer}
				}
				if err := pull(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), store, set); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func pull(ctx context.Context, out, progress io.Writer, store *modelstore.Store, names []string) error {
	for _, name := range names {
		show := newDownloads(progress)
		path, err := store.Ensure(ctx, name, show.progress)
		show.end()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %s\n", name, path)
	}
	return nil
}

func newModels(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use: "models", Short: "List models: what is here and what can be pulled", Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, store, err := o.models()
			if err != nil {
				return err
			}
			list, err := store.List()
			if err != nil {
				return err
			}
			rows := modelRows(store.Catalog(), list)
			if o.json {
				return printJSON(cmd.OutOrStdout(), rows)
			}
			printModels(cmd.OutOrStdout(), rows)
			return nil
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

// modelRow is one model of `ragd models --json`; path is there when the model is.
type modelRow struct {
	Name    string `json:"name"`
	Use     string `json:"use,omitempty"`
	Bytes   int64  `json:"bytes"`
	Here    bool   `json:"here"`
	Path    string `json:"path,omitempty"`
	Summary string `json:"summary,omitempty"`
}

// modelRows lists the catalogue, then what was pulled beside it.
func modelRows(catalog []modelstore.Item, here []modelstore.Installed) []modelRow {
	installed := map[string]modelstore.Installed{}
	for _, m := range here {
		installed[m.Name] = m
	}
	rows := []modelRow{}
	for _, item := range catalog {
		r := modelRow{Name: item.Name, Use: string(item.Use), Bytes: item.Size, Summary: item.Summary}
		if m, ok := installed[item.Name]; ok {
			r.Here, r.Path, r.Bytes = true, m.Path, m.Bytes
			delete(installed, item.Name)
		}
		rows = append(rows, r)
	}
	for _, m := range here {
		if _, pulled := installed[m.Name]; pulled {
			rows = append(rows, modelRow{Name: m.Name, Bytes: m.Bytes, Here: true, Path: m.Path})
		}
	}
	return rows
}

func printModels(w io.Writer, rows []modelRow) {
	t := newTable(w, 2)
	t.head("name", "for", "size", "here", "what")
	for _, r := range rows {
		state := "no"
		if r.Here {
			state = "yes"
		}
		t.row(r.Name, r.Use, size(r.Bytes), state, r.Summary)
	}
	t.print()
}
