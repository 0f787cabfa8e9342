// Package localpg runs the private PostgreSQL that ragd uses when no
// database.url is set.
//
// The data folder holds
//
//	pgdata/       the cluster, made once by initdb
//	run/          the Unix socket (or a private folder under os.TempDir when
//	              the path would be too long for a socket address)
//	postgres.log  what the server says, kept small
//	lock          held with flock by the ragd that uses the folder
//
// The server listens on the socket only and lets in nobody but the folder's
// owner and root (peer authentication). It runs in a process group of its own,
// so that Ctrl-C reaches ragd alone and ragd decides when the database stops.
// When ragd is killed the server lives on; the next Start adopts it.
//
// PostgreSQL refuses to run as root. A ragd that is root starts it as the owner
// of an existing cluster, else as the first of the users ragd, postgres and
// nobody that exists.
package localpg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Errors of Start.
var (
	// ErrInUse: another live process holds the data folder.
	ErrInUse = errors.New("data folder in use")
	// ErrNotTraversable: the user that PostgreSQL runs as cannot reach a folder.
	ErrNotTraversable = errors.New("folder not accessible")
)

const (
	role     = "ragd" // the superuser and the only role
	database = "ragd"

	startTimeout = 2 * time.Minute // crash recovery may replay a lot
	stopTimeout  = 30 * time.Second
	quitTimeout  = 5 * time.Second
)

// Config says where the server's parts lie.
type Config struct {
	// Install is the folder with bin/, lib/ and share/ of PostgreSQL and pgvector.
	Install string
	// Data is the folder that holds everything of this server; it is created.
	Data string
	// Logger is told of starts and stops; nil discards.
	Logger *slog.Logger
}

// Server is a running private PostgreSQL. It is started again when it ends
// without Stop.
type Server struct {
	cfg     Config
	lay     layout
	log     *slog.Logger
	lock    *os.File
	url     string
	adopted bool

	mu   sync.Mutex
	proc *process

	cancel  context.CancelFunc // ends supervise
	watched sync.WaitGroup
	stop    sync.Once
	stopErr error
}

// layout names the parts of a data folder.
type layout struct{ data, cluster, run, log, lock string }

func newLayout(data string) layout {
	return layout{
		data:    data,
		cluster: filepath.Join(data, "pgdata"),
		run:     filepath.Join(data, "run"),
		log:     filepath.Join(data, "postgres.log"),
		lock:    filepath.Join(data, "lock"),
	}
}

// Start starts the server, or adopts one that an earlier process left running
// in the same folder, and returns when it answers. The first start creates the
// cluster. A folder that another live process holds gives ErrInUse.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	s, err := prepare(cfg)
	if err != nil {
		return nil, err
	}
	p, err := s.bringUp(ctx)
	if err != nil {
		return nil, errors.Join(err, s.lock.Close())
	}
	s.proc, s.adopted, s.url = p, p.adopted(), connURL(p.socket, database)
	watch, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.watched.Go(func() { s.supervise(watch) })
	return s, nil
}

// prepare takes the folder: it exists, and no other process holds it.
func prepare(cfg Config) (*Server, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	var err error
	if cfg.Data, err = resolve(cfg.Data); err != nil {
		return nil, fmt.Errorf("database folder: %w", err)
	}
	if cfg.Install, err = filepath.EvalSymlinks(cfg.Install); err != nil {
		return nil, fmt.Errorf("PostgreSQL install folder: %w", err)
	}
	if cfg.Install, err = filepath.Abs(cfg.Install); err != nil {
		return nil, fmt.Errorf("PostgreSQL install folder: %w", err)
	}
	lay := newLayout(cfg.Data)
	lock, err := acquireLock(lay.lock)
	if err != nil {
		return nil, err
	}
	return &Server{cfg: cfg, lay: lay, log: cfg.Logger, lock: lock}, nil
}

// resolve creates the data folder and returns its real absolute path.
func resolve(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	mode := os.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o755 // another user must pass through it
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// bringUp adopts or starts the server and makes sure that its database exists.
func (s *Server) bringUp(ctx context.Context) (*process, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	p, err := s.adopt(ctx)
	if err != nil {
		return nil, err
	}
	if p == nil {
		if p, err = s.launch(ctx); err != nil {
			return nil, err
		}
	}
	if err := createDatabase(ctx, p.socket); err != nil {
		if !p.adopted() {
			s.abandon(p)
		}
		return nil, err
	}
	return p, nil
}

// launch starts a new server process and waits until it answers.
func (s *Server) launch(ctx context.Context) (*process, error) {
	own, err := chooseOwner(s.lay.cluster)
	if err != nil {
		return nil, err
	}
	if err := own.canReach(filepath.Join(s.cfg.Install, "bin"), s.lay.data); err != nil {
		return nil, err
	}
	if err := s.initCluster(ctx, own); err != nil {
		return nil, err
	}
	if err := writeAccess(s.lay.cluster, own); err != nil {
		return nil, fmt.Errorf("write access rules: %w", err)
	}
	socket, err := socketFolder(s.lay.run, own)
	if err != nil {
		return nil, err
	}
	p, err := spawn(s.cfg.Install, s.lay, socket, own)
	if err != nil {
		return nil, err
	}
	if err := p.awaitReady(ctx); err != nil {
		s.abandon(p)
		return nil, fmt.Errorf("PostgreSQL did not start: %w%s", err, logTail(s.lay.log))
	}
	s.log.Info("database started", "pid", p.pid, "user", own.name, "data", s.lay.data)
	return p, nil
}

// abandon stops a server whose start failed; the failure is what is reported.
func (s *Server) abandon(p *process) {
	ctx, cancel := context.WithTimeout(context.Background(), quitTimeout)
	defer cancel()
	if err := p.stop(ctx, s.log); err != nil {
		s.log.Error("database not stopped", "error", err)
	}
}

// URL is the connection string of ragd's database, for pgx.
func (s *Server) URL() string { return s.url }

func connURL(socket, db string) string {
	q := url.Values{"host": {socket}, "port": {socketPort}, "user": {role}, "sslmode": {"disable"}}
	return "postgres:///" + db + "?" + q.Encode()
}

// Adopted says whether the server had been left running by an earlier process.
func (s *Server) Adopted() bool { return s.adopted }

// PID is the process number of the server.
func (s *Server) PID() int { return s.process().pid }

func (s *Server) process() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
}

// Stop shuts the server down: open transactions are rolled back, sessions
// closed. If that takes longer than 30 s or ctx ends, the server is told to quit
// at once, which costs a recovery at the next start. Later calls return the same
// result.
func (s *Server) Stop(ctx context.Context) error {
	s.stop.Do(func() {
		s.cancel()
		s.watched.Wait()
		ctx, cancel := context.WithTimeout(ctx, stopTimeout)
		defer cancel()
		p := s.process()
		err := p.stop(ctx, s.log)
		if p.socket != s.lay.run {
			_ = os.Remove(p.socket) // a temporary folder; one that is not empty stays
		}
		s.stopErr = errors.Join(err, s.lock.Close())
	})
	return s.stopErr
}
