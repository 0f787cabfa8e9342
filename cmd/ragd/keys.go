package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"ragd/internal/app"
	"ragd/internal/config"
	"ragd/internal/keys"
)

func newKeys(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use: "keys", Short: "Make, list and revoke the keys of callers", Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newKeysAdd(o), newKeysList(o), newKeysRevoke(o))
	return cmd
}

func newKeysAdd(o *options) *cobra.Command {
	var k keys.Key
	cmd := &cobra.Command{
		Use: "add", Short: "Make a key and print it, once", Args: args(cobra.NoArgs),
		Long: "Make a key and print it. It cannot be printed again: only its SHA-256 is kept. As soon as there is a key, every caller needs one.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := k.Normalise(); err != nil {
				return &usageError{err}
			}
			return o.withDatabase(cmd, func(a *app.App) error {
				made, secret, err := a.AddKey(cmd.Context(), k)
				if err != nil {
					return err
				}
				if o.json {
					return printJSON(cmd.OutOrStdout(), struct {
						keys.Key
						Secret string `json:"secret"`
					}{made, secret})
				}
				fmt.Fprintln(cmd.OutOrStdout(), secret)
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&k.Name, "name", "", "what the key is for")
	f.StringVar(&k.Tenant, "tenant", "", "whose collections it sees (default \"default\")")
	f.StringVar((*string)(&k.Role), "role", string(keys.Ask), "ask, ingest or admin")
	f.IntVar(&k.RequestsPerMinute, "requests-per-minute", 0, "0 for no limit")
	f.IntVar(&k.TokensPerMinute, "tokens-per-minute", 0, "tokens read and written; 0 for no limit")
	f.IntVar(&k.Concurrent, "concurrent", 0, "requests at once; 0 for no limit")
	f.BoolVar(&o.json, "json", false, "print the key as JSON")
	return cmd
}

func newKeysList(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the keys", Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.withDatabase(cmd, func(a *app.App) error {
				list, err := a.ListKeys(cmd.Context())
				if err != nil {
					return err
				}
				if o.json {
					return printJSON(cmd.OutOrStdout(), list)
				}
				t := newTable(cmd.OutOrStdout(), 0, 4, 5, 6)
				t.head("id", "name", "tenant", "role", "requests/min", "tokens/min", "at once", "made")
				for _, k := range list {
					t.row(strconv.FormatInt(k.ID, 10), k.Name, k.Tenant, string(k.Role), limit(k.RequestsPerMinute), limit(k.TokensPerMinute), limit(k.Concurrent), k.Created.Format(time.DateOnly))
				}
				t.print()
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print the keys as JSON")
	return cmd
}

// limit is a limit in a table.
func limit(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func newKeysRevoke(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "End a key; a running server follows within seconds", Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			id, err := strconv.ParseInt(a[0], 10, 64)
			if err != nil {
				return &usageError{fmt.Errorf("%q is not the id of a key; `ragd keys list` shows them", a[0])}
			}
			return o.withDatabase(cmd, func(a *app.App) error { return a.RevokeKey(cmd.Context(), id) })
		},
	}
}

// withDatabase opens the database alone, beside a server that may be running on it.
func (o *options) withDatabase(cmd *cobra.Command, do func(*app.App) error) error {
	cfg, err := o.besideServer()
	if err != nil {
		return err
	}
	opts := o.appOptions(cmd, cfg)
	opts.DatabaseOnly = true
	a, err := app.Open(cmd.Context(), cfg, opts)
	if err != nil {
		return err
	}
	return errors.Join(do(a), a.Close())
}

// besideServer is the configuration with the database of a server that runs on this
// data folder, so that a command works beside it; without one it is o.config().
func (o *options) besideServer() (config.Config, error) {
	cfg, err := o.config()
	if err != nil {
		return cfg, err
	}
	if url, err := app.DatabaseURL(cfg); err == nil {
		cfg.Database.URL = url
	}
	return cfg, nil
}
