package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"ragd/internal/answer"
	"ragd/internal/config"
	"ragd/internal/httpapi"
	"ragd/internal/keys"
	"ragd/internal/webui"
)

const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// minRetry is the least that Retry-After says.
	minRetry = time.Second
)

// Listen opens the address that cfg names. Anything but loopback needs keys.
func Listen(cfg config.Config) (net.Listener, error) {
	if !httpapi.Loopback(cfg.Server.Addr) && len(cfg.Server.Keys) == 0 && !cfg.Server.DatabaseKeys {
		return nil, fmt.Errorf("server.addr %s can be reached from other machines: set server.keys to the SHA-256 of a key "+
			"(printf %%s \"$KEY\" | sha256sum), make keys with `ragd keys add` and set server.database_keys, or listen on 127.0.0.1", cfg.Server.Addr)
	}
	l, err := net.Listen("tcp", cfg.Server.Addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use, perhaps by another ragd: stop that one, or choose another address with --addr", cfg.Server.Addr)
	}
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}

// Serve answers on l until ctx ends, then lets running answers finish within the
// configured time; running ingests stop and report. A device that is lost ends it too,
// with an error. It may be called once.
func (a *App) Serve(ctx context.Context, l net.Listener) error {
	if err := a.checkKeys(ctx, l.Addr().String()); err != nil {
		return err
	}
	srv := &http.Server{Handler: a.Handler(), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	a.log.Info("ragd is serving", "addr", l.Addr().String(), "version", a.opts.Version)
	var lost error
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case err := <-a.lost:
		lost = fmt.Errorf("the device is lost, ragd has to be started again: %w", err)
	case <-ctx.Done():
	}
	a.log.Info("shutting down")
	close(a.stopping)
	grace, cancel := context.WithTimeout(context.Background(), a.cfg.Server.ShutdownTimeout)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		return errors.Join(lost, fmt.Errorf("some requests did not finish in time: %w", err), srv.Close())
	}
	return lost
}

// checkKeys refuses to serve other machines while there is no key.
func (a *App) checkKeys(ctx context.Context, addr string) error {
	if httpapi.Loopback(addr) {
		return nil
	}
	needed, err := a.guard.Needed(ctx)
	if err == nil && !needed {
		err = fmt.Errorf("%s can be reached from other machines, and there is no key: make one with `ragd keys add`", addr)
	}
	return err
}

// Handler serves every route.
func (a *App) Handler() http.Handler {
	return httpapi.New(httpapi.Deps{
		Asker: a.ask, Library: a, Ingester: a, Guard: a.guard, Ready: a.Ready, Metrics: a.tel.Handler(), Log: a.log,
		Latency: webui.Latency(httpapi.LatencyPath), LatencyData: webui.Data(a.tel),
		Models:   a.models(),
		Stopping: a.stopping, Telemetry: a.tel,
	}, httpapi.Config{
		MaxBodyBytes: a.cfg.Server.MaxBodyBytes, RequestTimeout: a.cfg.Server.RequestTimeout,
		Version: a.opts.Version, Dimensions: a.embed.Dim(),
	})
}

// Ready returns why a question could not be answered now.
func (a *App) Ready(ctx context.Context) error { return a.pool.Ping(ctx) }

// Ask answers a question in this process.
func (a *App) Ask(ctx context.Context, req answer.Request, sink answer.Sink) (*answer.Result, error) {
	return a.ask.Ask(ctx, time.Now(), req, sink)
}

// Search retrieves in this process.
func (a *App) Search(ctx context.Context, req answer.SearchRequest) (*answer.SearchResult, error) {
	return a.ask.Search(ctx, req)
}

// AddKey makes a key in this process.
func (a *App) AddKey(ctx context.Context, k keys.Key) (keys.Key, string, error) {
	return a.guard.Add(ctx, k)
}

// ListKeys lists the valid keys in this process.
func (a *App) ListKeys(ctx context.Context) ([]keys.Key, error) { return a.guard.List(ctx) }

// RevokeKey ends a key in this process.
func (a *App) RevokeKey(ctx context.Context, id int64) error { return a.guard.Revoke(ctx, id) }
