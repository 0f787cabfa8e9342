package localpg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// SQLSTATE codes that say: try again.
const (
	cannotConnectNow   = "57P03"
	tooManyConnections = "53300"
)

// errGone: the server ended while it was waited for.
var errGone = errors.New("the server process ended")

// awaitReady waits until the server accepts connections.
func (p *process) awaitReady(ctx context.Context) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := p.probe(ctx)
		if err == nil {
			return nil
		}
		if !p.alive() {
			return errGone
		}
		var pgErr *pgconn.PgError
		if errors.As(err, &pgErr) && pgErr.Code != cannotConnectNow && pgErr.Code != tooManyConnections {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-p.exited:
		case <-tick.C:
		}
	}
}

func (p *process) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, connURL(p.socket, "postgres"))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// createDatabase makes ragd's database in a new cluster.
func createDatabase(ctx context.Context, socket string) error {
	conn, err := pgx.Connect(ctx, connURL(socket, "postgres"))
	if err != nil {
		return fmt.Errorf("connect to the private database: %w", err)
	}
	defer conn.Close(ctx)
	var found bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", database).Scan(&found); err != nil {
		return fmt.Errorf("look for the database: %w", err)
	}
	if found {
		return nil
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+database); err != nil {
		return fmt.Errorf("create the database: %w", err)
	}
	return nil
}
