package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ragd/internal/client"
	"ragd/internal/config"
)

// options are the flags every command has.
type options struct {
	file, addr, home, key string
	json                  bool
	verbose               bool
	set                   map[string]string
}

func newRoot() *cobra.Command {
	o := &options{}
	root := &cobra.Command{
		Use:           "ragd",
		Short:         "Answer questions over your documents, and say where the tokens and the milliseconds went",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          knownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := root.PersistentFlags()
	f.StringVar(&o.file, "config", os.Getenv("RAGD_CONFIG"), "YAML file with settings")
	f.StringVar(&o.addr, "addr", "", "address to listen on or to reach (default 127.0.0.1:8080)")
	f.StringVar(&o.home, "home", "", "data folder (default $RAGD_HOME, else $XDG_DATA_HOME/ragd)")
	f.StringVar(&o.key, "key", os.Getenv("RAGD_KEY"), "key for a server that asks for one")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "log what happens to standard error")
	f.StringToStringVar(&o.set, "set", nil, "set any setting, such as --set inference.threads=2")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(newServe(o), newIngest(o), newReembed(o), newAsk(o), newSearch(o), newEval(o), newPull(o), newModels(o), newDoctor(o), newKV(o), newDB(o), newKeys(o), newBench(o), newVersion())
	return root
}

// args turns cobra's argument errors into usage errors.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, a []string) error {
		if err := check(cmd, a); err != nil {
			return &usageError{fmt.Errorf("%w\nusage: %s", err, cmd.UseLine())}
		}
		return nil
	}
}

// knownCommand refuses a subcommand that does not exist, with what may be meant.
func knownCommand(cmd *cobra.Command, a []string) error {
	if len(a) == 0 {
		return nil
	}
	hint := "; see ragd --help"
	if meant := cmd.SuggestionsFor(a[0]); len(meant) > 0 {
		hint = "; did you mean " + strings.Join(meant, " or ") + "?"
	}
	return &usageError{fmt.Errorf("unknown command %q%s", a[0], hint)}
}

// config reads the settings with this command line's flags on top.
func (o *options) config() (config.Config, error) {
	flags := map[string]any{}
	for k, v := range o.set {
		flags[k] = v
	}
	if o.addr != "" {
		flags["server.addr"] = o.addr
	}
	if o.home != "" {
		flags["home"] = o.home
	}
	c, err := config.Load(o.file, os.Environ(), flags)
	if err != nil {
		return c, &usageError{err}
	}
	return c, nil
}

// probe is how long a running server may take to say that it is there.
const probe = 500 * time.Millisecond

// server returns a client of the running server, or nil.
func (o *options) server(cmd *cobra.Command, cfg config.Config) *client.Client {
	c := client.ForAddr(cfg.Server.Addr, o.key)
	if c.Alive(cmd.Context(), probe) {
		return c
	}
	return nil
}

// logger writes JSON lines. Commands other than serve stay quiet unless asked.
func (o *options) logger(w io.Writer, level string) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil || (w == nil && !o.verbose) {
		return slog.New(slog.DiscardHandler)
	}
	if w == nil {
		w = os.Stderr
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l}))
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: args(cobra.NoArgs),
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), "ragd", version) },
	}
}
