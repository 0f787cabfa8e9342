package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
	pgxvector "github.com/pgvector/pgvector-go/pgx"
)

const (
	connectTimeout = 2 * time.Second
	// cancelGrace is how long a cancelled statement may take to end before its
	// connection is cut.
	cancelGrace = time.Second
)

// PoolConfig turns a connection string into the pool settings that ragd uses: a
// database that is away is noticed within seconds, and a cancelled context
// cancels the statement on the server.
func PoolConfig(url string) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("database.url: %w", err)
	}
	cfg.ConnConfig.ConnectTimeout = connectTimeout
	cfg.PingTimeout = connectTimeout
	cfg.MaxConns = max(cfg.MaxConns, 8)
	cfg.ConnConfig.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: cancelGrace}
	}
	return cfg, nil
}

// IsConnectionError says whether err means that the database could not be
// reached or went away, rather than that it refused what it was asked.
func IsConnectionError(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return connectionCode(pgErr.Code)
	}
	var connErr *pgconn.ConnectError
	var netErr *net.OpError
	return errors.As(err, &connErr) || errors.As(err, &netErr) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err)
}

// connectionCode knows the SQLSTATE codes of PostgreSQL's appendix A that speak
// of the connection or of a server that is going, coming or full.
func connectionCode(code string) bool {
	switch code {
	case "57P01", "57P02", "57P03", "53300":
		return true
	}
	return strings.HasPrefix(code, "08")
}

// Read runs fn in a read-only transaction whose statements all see one state of
// the database. When the connection turns out dead (the server was restarted), fn
// runs once more on a fresh one, so it must start from nothing each time. An
// unreachable database gives ErrUnavailable.
func Read(ctx context.Context, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) error {
	return retry(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, fn)
}

// write runs fn in a transaction, again with one retry. What fn does must be
// harmless to repeat: the lost answer may have been that of the commit.
func write(ctx context.Context, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) error {
	return retry(ctx, pool, pgx.TxOptions{}, fn)
}

func retry(ctx context.Context, pool *pgxpool.Pool, opts pgx.TxOptions, fn func(tx pgx.Tx) error) error {
	err := inTx(ctx, pool, opts, fn)
	if IsConnectionError(err) && ctx.Err() == nil {
		pool.Reset() // its idle connections are as dead as this one
		err = inTx(ctx, pool, opts, fn)
	}
	if IsConnectionError(err) && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

func inTx(ctx context.Context, pool *pgxpool.Pool, opts pgx.TxOptions, fn func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, pool, opts, func(tx pgx.Tx) error {
		if err := registerVector(ctx, tx.Conn()); err != nil {
			return err
		}
		return fn(tx)
	})
}

// registerVector teaches a connection the types of pgvector, once. It cannot be
// done when the connection opens: the extension may be created later.
func registerVector(ctx context.Context, conn *pgx.Conn) error {
	if _, ok := conn.TypeMap().TypeForName("halfvec"); ok {
		return nil
	}
	return pgxvector.RegisterTypes(ctx, conn)
}
