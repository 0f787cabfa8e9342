package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"ragd/internal/app"
)

func newDB(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use: "db", Short: "Work with the database: url, dump, restore", Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newDBURL(o), newDBDump(o), newDBRestore(o))
	return cmd
}

func newDBURL(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "url", Short: "Print the connection string of the database in use", Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := o.config()
			if err != nil {
				return err
			}
			url, err := app.DatabaseURL(cfg)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), url)
			return nil
		},
	}
}

func newDBDump(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "dump FILE", Short: "Write the database to a file, or to standard output for -", Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			cfg, err := o.config()
			if err != nil {
				return err
			}
			dump := func(w io.Writer) error { return app.Dump(cmd.Context(), cfg, o.appOptions(cmd, cfg), w) }
			if a[0] == "-" {
				return dump(cmd.OutOrStdout())
			}
			return writeWhole(a[0], dump)
		},
	}
}

// writeWhole writes a file that only its owner may read, and puts it in place when it
// is whole.
func writeWhole(path string, write func(io.Writer) error) error {
	part := path + ".part"
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return os.Rename(part, path)
}

func newDBRestore(o *options) *cobra.Command {
	var replace bool
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Replace the database by a dump, read from a file, or from standard input for -", Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			cfg, err := o.config()
			if err != nil {
				return err
			}
			if c := o.server(cmd, cfg); c != nil {
				return fmt.Errorf("%s is serving: stop it before its database is replaced", c.Base())
			}
			in := cmd.InOrStdin()
			if a[0] != "-" {
				f, err := os.Open(a[0])
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			err = app.Restore(cmd.Context(), cfg, o.appOptions(cmd, cfg), in, replace)
			if errors.Is(err, app.ErrNotEmpty) {
				return fmt.Errorf("%w; --replace overwrites them", err)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "overwrite a database that holds documents")
	return cmd
}
