package migrations

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrUnsuitable: the database lacks something that ragd needs. The message says
// what, and the statement that mends it.
var ErrUnsuitable = errors.New("database unsuitable")

const (
	minServer = 15
	// minVector: earlier releases lose index entries or fail to vacuum (pgvector
	// changelog, 0.8.2 to 0.8.4).
	minVector = "0.8.4"
)

// facts is what Check asks the server.
type facts struct {
	database, user, encoding, version string
	server                            int
	standby                           bool
	available, installed              *string // versions of pgvector
	canCreate                         bool    // schemas, in this database
	schemaExists, schemaWritable      bool
}

// Check looks whether a database can hold ragd's schema: PostgreSQL ≥ 15, UTF-8,
// writable, pgvector ≥ 0.8.4 installed or installable by this user, and the
// right to create the schema or tables in it. It changes nothing. An error that
// matches ErrUnsuitable names the exact statement to run.
func Check(ctx context.Context, conn *pgx.Conn) error {
	f, err := ask(ctx, conn)
	if err != nil {
		return fmt.Errorf("examine the database: %w", err)
	}
	if msg := f.serverFault(); msg != "" {
		return unsuitable(f, msg)
	}
	if msg := f.vectorFault(); msg != "" {
		return unsuitable(f, msg)
	}
	if f.installed == nil {
		if err := tryExtension(ctx, conn, f); err != nil {
			return err
		}
	}
	if msg := f.rightsFault(); msg != "" {
		return unsuitable(f, msg)
	}
	return nil
}

// tryExtension creates the extension and takes it back: whether an ordinary user
// may do so depends on the provider's additions and cannot be read from a table.
func tryExtension(ctx context.Context, conn *pgx.Conn, f facts) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return fmt.Errorf("examine the database: %w", err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	_, err = tx.Exec(ctx, "CREATE EXTENSION vector")
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return unsuitable(f, fmt.Sprintf("user %q cannot enable pgvector (%s); run as superuser in this database: CREATE EXTENSION vector;", f.user, pgErr.Message))
	}
	return err
}

func unsuitable(f facts, msg string) error {
	return fmt.Errorf("%w: database %q: %s", ErrUnsuitable, f.database, msg)
}

func ask(ctx context.Context, conn *pgx.Conn) (facts, error) {
	var f facts
	err := conn.QueryRow(ctx, `
		SELECT current_database(), current_user, getdatabaseencoding(), current_setting('server_version'),
		       current_setting('server_version_num')::int, pg_is_in_recovery(),
		       (SELECT default_version FROM pg_available_extensions WHERE name = 'vector'),
		       (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
		       has_database_privilege(current_database(), 'CREATE'),
		       EXISTS (SELECT FROM pg_namespace WHERE nspname = 'ragd'),
		       coalesce((SELECT has_schema_privilege(oid, 'CREATE') AND has_schema_privilege(oid, 'USAGE')
		                 FROM pg_namespace WHERE nspname = 'ragd'), false)`).Scan(
		&f.database, &f.user, &f.encoding, &f.version, &f.server, &f.standby,
		&f.available, &f.installed, &f.canCreate, &f.schemaExists, &f.schemaWritable)
	return f, err
}

// serverFault says what is wrong with the server itself.
func (f facts) serverFault() string {
	switch {
	case f.server < minServer*10000:
		return fmt.Sprintf("PostgreSQL %s is too old; ragd needs %d or later", f.version, minServer)
	case f.encoding != "UTF8":
		return fmt.Sprintf("its encoding is %s; create one with: CREATE DATABASE ragd ENCODING 'UTF8' TEMPLATE template0;", f.encoding)
	case f.standby:
		return "it is a read-only standby; point database.url at the primary"
	}
	return ""
}

// vectorFault says what is wrong with pgvector.
func (f facts) vectorFault() string {
	major := f.server / 10000
	upgrade := fmt.Sprintf("install pgvector %s or later for PostgreSQL %d on its machine (Debian: apt install postgresql-%d-pgvector from apt.postgresql.org)",
		minVector, major, major)
	switch {
	case f.installed != nil && atLeast(*f.installed, minVector):
		return ""
	case f.installed != nil && f.available != nil && atLeast(*f.available, minVector):
		return fmt.Sprintf("pgvector %s is installed, %s is needed; run as superuser: ALTER EXTENSION vector UPDATE;", *f.installed, minVector)
	case f.installed != nil:
		return fmt.Sprintf("pgvector %s is too old; %s, then run as superuser: ALTER EXTENSION vector UPDATE;", *f.installed, upgrade)
	case f.available == nil:
		return fmt.Sprintf("pgvector is missing; %s, then run as superuser: CREATE EXTENSION vector;", upgrade)
	case !atLeast(*f.available, minVector):
		return fmt.Sprintf("the server offers pgvector %s only; %s, then run as superuser: CREATE EXTENSION vector;", *f.available, upgrade)
	}
	return ""
}

// rightsFault says which right the user lacks.
func (f facts) rightsFault() string {
	user, db := pgx.Identifier{f.user}.Sanitize(), pgx.Identifier{f.database}.Sanitize()
	switch {
	case f.schemaExists && !f.schemaWritable:
		return fmt.Sprintf("user %s may not create tables in schema ragd; run as its owner: GRANT USAGE, CREATE ON SCHEMA ragd TO %s;", user, user)
	case !f.schemaExists && !f.canCreate:
		return fmt.Sprintf("user %s may not create the schema; run as superuser: GRANT CREATE ON DATABASE %s TO %s;", user, db, user)
	}
	return ""
}

// atLeast compares dotted version numbers; what is no number counts as 0.
func atLeast(have, want string) bool {
	h, w := strings.Split(have, "."), strings.Split(want, ".")
	for i := range w {
		var a int
		if i < len(h) {
			a, _ = strconv.Atoi(h[i])
		}
		b, _ := strconv.Atoi(w[i])
		if a != b {
			return a > b
		}
	}
	return true
}
