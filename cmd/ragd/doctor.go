package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ragd/internal/app"
	"ragd/internal/client"
)

// errUnhealthy ends doctor when a check failed; which one was printed.
var errUnhealthy = errors.New("not everything is well")

func newDoctor(o *options) *cobra.Command {
	var ready bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check the machine, the models and the database", Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := o.config()
			if err != nil {
				return err
			}
			if ready {
				return client.ForAddr(cfg.Server.Addr, o.key).Ready(cmd.Context())
			}
			checks := app.Doctor(cmd.Context(), cfg, o.appOptions(cmd, cfg))
			if o.json {
				return errors.Join(printJSON(cmd.OutOrStdout(), checks), unhealthy(checks))
			}
			printChecks(cmd.OutOrStdout(), checks)
			return unhealthy(checks)
		},
	}
	cmd.Flags().BoolVar(&ready, "ready", false, "only ask the running server whether it is ready")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

func printChecks(w io.Writer, checks []app.Check) {
	t := newTable(w)
	for _, c := range checks {
		switch {
		case c.Problem == "":
			t.row(c.Name, "ok", c.Found)
		case c.Found == "":
			t.inStyle(red, c.Name, "PROBLEM", c.Problem)
		default:
			t.inStyle(red, c.Name, "PROBLEM", c.Found+": "+c.Problem)
		}
	}
	t.print()
}

func unhealthy(checks []app.Check) error {
	for _, c := range checks {
		if c.Problem != "" {
			return fmt.Errorf("%w: %s", errUnhealthy, c.Name)
		}
	}
	return nil
}
