package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"ragd/internal/app"
	"ragd/internal/config"
)

func newServe(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "serve", Short: "Answer over HTTP", Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			cfg, err := o.config()
			if err != nil {
				return err
			}
			// The address is taken before minutes of loading.
			l, err := app.Listen(cfg)
			if err != nil {
				return err
			}
			defer l.Close()
			opts := o.appOptions(cmd, cfg)
			opts.Log = o.logger(os.Stderr, cfg.Telemetry.LogLevel)
			a, err := app.Open(cmd.Context(), cfg, opts)
			if err != nil {
				return err
			}
			defer func() { err = cmp.Or(err, a.Close()) }()
			fmt.Fprintf(cmd.OutOrStdout(), "ragd answers on http://%s\n", l.Addr())
			return a.Serve(cmd.Context(), l)
		},
	}
}

// appOptions are what every command opens the app with.
func (o *options) appOptions(cmd *cobra.Command, cfg config.Config) app.Options {
	return app.Options{
		Version:  version,
		Log:      o.logger(nil, cfg.Telemetry.LogLevel),
		Progress: newDownloads(cmd.ErrOrStderr()).progress,
	}
}
