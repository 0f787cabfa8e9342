// Package app is the composition root: it opens what a command needs in the
// right order, hands the parts to each other, and closes them in reverse.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"ragd/inference/cpu"
	"ragd/inference/gguf"
	"ragd/ingest/source"
	"ragd/ingest/store"
	"ragd/internal/answer"
	"ragd/internal/config"
	"ragd/internal/keys"
	"ragd/internal/modelstore"
	"ragd/telemetry"
)

// Options are what the caller of Open decides.
type Options struct {
	// Version is the program's own.
	Version string
	Log     *slog.Logger
	// DocumentsOnly leaves the answer model out: enough to ingest.
	DocumentsOnly bool
	// DatabaseOnly leaves all models out.
	DatabaseOnly bool
	// Progress is told of downloads; may be nil.
	Progress modelstore.Progress
	// Telemetry replaces the one that the environment asks for; may be nil.
	Telemetry *telemetry.Telemetry
}

// App is a running set of parts.
type App struct {
	cfg    config.Config
	opts   Options
	log    *slog.Logger
	home   string
	tel    *telemetry.Telemetry
	pool   *pgxpool.Pool
	store  *store.Store
	source *source.Source
	// threads compute for all models, so that these do not fight for the cores.
	threads *cpu.Pool
	embed   *embedder
	gen     *generator
	scorer  answer.TextScorer // nil where nothing reranks
	ask     *answer.Service
	guard   *keys.Guard
	// stopping is closed when Serve begins to shut down.
	stopping chan struct{}
	// lost is told when a device is; Serve ends then.
	lost chan error
	// closers run last in, first out.
	closers []func(context.Context) error
}

// Open starts what cfg asks for: telemetry, database, embedding model, and
// unless DocumentsOnly the answer model. What was started is stopped again when
// a later part fails.
func Open(ctx context.Context, cfg config.Config, opts Options) (a *App, err error) {
	a = &App{cfg: cfg, opts: opts, log: opts.Log, tel: opts.Telemetry, stopping: make(chan struct{}), lost: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
			a = nil
		}
	}()
	if a.home, err = home(cfg); err != nil {
		return a, err
	}
	if err := a.openTelemetry(ctx); err != nil {
		return a, err
	}
	if err := a.checkModels(ctx); err != nil {
		return a, err
	}
	if err := a.openDatabase(ctx); err != nil || opts.DatabaseOnly {
		return a, err
	}
	if err := a.openSource(); err != nil {
		return a, err
	}
	if err := a.startThreads(); err != nil {
		return a, err
	}
	if err := a.openEmbedder(ctx); err != nil {
		return a, err
	}
	if opts.DocumentsOnly {
		return a, nil
	}
	return a, a.openAnswers(ctx)
}

func home(cfg config.Config) (string, error) {
	if cfg.Home != "" {
		return filepath.Abs(cfg.Home)
	}
	return modelstore.Home()
}

func (a *App) openTelemetry(ctx context.Context) error {
	if a.tel != nil {
		return nil
	}
	tel, err := telemetry.New(ctx, telemetry.Config{Version: a.opts.Version, RecordContent: a.cfg.Telemetry.RecordContent, TrustTraceparent: a.cfg.Telemetry.TrustTraceparent}, a.log)
	if err != nil {
		return err
	}
	a.tel = tel
	a.onClose(tel.Shutdown)
	return nil
}

func (a *App) startThreads() error {
	threads, err := cpu.NewPool(a.cfg.Inference.Threads)
	if err != nil {
		return err
	}
	a.threads = threads
	a.onClose(closing(threads))
	return nil
}

func (a *App) onClose(f func(context.Context) error) { a.closers = append(a.closers, f) }

// Close stops everything, the newest part first, within the configured time.
func (a *App) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), a.cfg.Server.ShutdownTimeout)
	defer cancel()
	var errs []error
	for i := len(a.closers) - 1; i >= 0; i-- {
		errs = append(errs, a.closers[i](ctx))
	}
	a.closers = nil
	return errors.Join(errs...)
}

// closing adapts a Close method.
func closing(c io.Closer) func(context.Context) error {
	return func(context.Context) error { return c.Close() }
}

// ensure returns the path of a model: a file or folder of that name, else the
// model store's, fetched when it is missing.
func (a *App) ensure(ctx context.Context, name string) (string, error) {
	if looksLikePath(name) {
		return filepath.Abs(name)
	}
	path, err := modelstore.Open(a.home).Ensure(ctx, name, a.opts.Progress)
	if err != nil {
		return "", fmt.Errorf("model: %w", err)
	}
	return path, nil
}

// looksLikePath tells a file or folder from a name of the model store.
func looksLikePath(name string) bool {
	if strings.HasPrefix(name, "hf:") {
		return false
	}
	return filepath.IsAbs(name) || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".gguf")
}

// checkModels reads the headers of the model files, so that one that is missing
// or cut short is found before a database is started.
func (a *App) checkModels(ctx context.Context) error {
	if a.opts.DatabaseOnly {
		return nil
	}
	names := []string{a.cfg.Models.Embedding}
	if !a.opts.DocumentsOnly && a.cfg.Inference.Remote.URL == "" {
		names = append(names, a.cfg.Models.Answer)
	}
	for _, name := range names {
		path, err := a.ensure(ctx, name)
		if err != nil {
			return err
		}
		if err := readable(path); err != nil {
			return fmt.Errorf("model: %w", err)
		}
	}
	return nil
}

// readable reads the header of a model's file. A Hugging Face folder is read when it is
// loaded.
func readable(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	f, err := gguf.Open(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// modelName is what callers know a model by: where it lies is nobody's business.
func modelName(name string) string {
	if !looksLikePath(name) {
		return name
	}
	base := filepath.Base(name)
	return strings.TrimSuffix(base, ".gguf")
}

// ModelPath is where a model lies, fetched first when it is missing. progress
// may be nil.
func ModelPath(ctx context.Context, cfg config.Config, name string, progress modelstore.Progress) (string, error) {
	dir, err := home(cfg)
	if err != nil {
		return "", err
	}
	a := &App{home: dir, opts: Options{Progress: progress}}
	return a.ensure(ctx, name)
}
