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
			if o.json {
				return printJSON(cmd.OutOrStdout(), list)
			}
			printModels(cmd.OutOrStdout(), store.Catalog(), list)
			return nil
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

func printModels(w io.Writer, catalog []modelstore.Item, here []modelstore.Installed) {
	installed := map[string]modelstore.Installed{}
	for _, m := range here {
		installed[m.Name] = m
	}
	t := newTable(w, 2)
	t.row("name", "for", "size", "here", "what")
	for _, item := range catalog {
		state := "no"
		bytes := item.Size
		if m, ok := installed[item.Name]; ok {
			state, bytes = "yes", m.Bytes
			delete(installed, item.Name)
		}
		t.row(item.Name, string(item.Use), size(bytes), state, item.Summary)
	}
	for _, m := range here {
		if _, pulled := installed[m.Name]; pulled {
			t.row(m.Name, "", size(m.Bytes), "yes", "")
		}
	}
	t.print()
}
