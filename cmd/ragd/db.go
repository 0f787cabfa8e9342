package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"ragd/internal/app"
)

func newDB(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use: "db", Short: "Work with the database", Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
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
	})
	return cmd
}
