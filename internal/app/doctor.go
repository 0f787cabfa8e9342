package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"ragd/inference/cpu/kernel"
	"ragd/inference/gguf"
	"ragd/ingest/store"
	"ragd/internal/client"
	"ragd/internal/config"
	"ragd/internal/localpg"
	"ragd/internal/modelstore"
	"ragd/migrations"
)

// Check is one line of `ragd doctor`.
type Check struct {
	Name string `json:"name"`
	// Found is what is there.
	Found string `json:"found,omitempty"`
	// Problem is what is wrong and what to do about it; empty when all is well.
	Problem string `json:"problem,omitempty"`
}

// Doctor looks at the machine, the data folder, the models, the database and its
// vectors. It starts no server and fetches nothing.
func Doctor(ctx context.Context, cfg config.Config, opts Options) []Check {
	checks := []Check{checkCPU(cfg), checkDevice(cfg.Inference)}
	dir, err := home(cfg)
	if err != nil {
		return append(checks, Check{Name: "data folder", Problem: err.Error()})
	}
	checks = append(checks, checkFolder(dir))
	checks = append(checks, checkModels(cfg, dir)...)
	checks = append(checks, checkLayers(cfg, dir)...)
	checks = append(checks, checkServer(ctx, cfg))
	checks = append(checks, checkDatabase(ctx, cfg)...)
	return append(checks, checkVectors(ctx, cfg)...)
}

func checkCPU(cfg config.Config) Check {
	threads := cfg.Inference.Threads
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	return Check{Name: "cpu", Found: fmt.Sprintf("%s kernels, %d threads, %s/%s", kernel.Best().Name, threads, runtime.GOOS, runtime.GOARCH)}
}

// lowSpace is when the data folder's disk counts as almost full.
const lowSpace = 1 << 30

func checkFolder(dir string) Check {
	c := Check{Name: "data folder"}
	at := dir
	var st unix.Statfs_t
	for unix.Statfs(at, &st) != nil && at != filepath.Dir(at) {
		at = filepath.Dir(at)
	}
	free := int64(st.Bavail) * st.Bsize
	c.Found = fmt.Sprintf("%s, %.1f GiB free", dir, float64(free)/(1<<30))
	if free < lowSpace {
		c.Problem = "less than 1 GiB is free; choose another folder with RAGD_HOME"
	}
	return c
}

func checkModels(cfg config.Config, dir string) []Check {
	list, err := modelstore.Open(dir).List()
	if err != nil {
		return []Check{{Name: "models", Problem: err.Error()}}
	}
	paths := map[string]string{}
	for _, m := range list {
		paths[m.Name] = m.Path
	}
	var checks []Check
	roles := [][2]string{{"answer model", cfg.Models.Answer}, {"embedding model", cfg.Models.Embedding}}
	if cfg.Rerank.Scorer == config.ScoreCross {
		roles = append(roles, [2]string{"reranker", cfg.Models.Rerank})
	}
	for _, role := range roles {
		c := Check{Name: role[0], Found: role[1]}
		if _, here := paths[role[1]]; !here && !looksLikePath(role[1]) {
			c.Found, c.Problem = "", fmt.Sprintf("%s is not here yet: ragd pull %s", role[1], role[1])
		}
		checks = append(checks, c)
	}
	return checks
}

// checkLayers says where the layers of the answer model would lie, where a GPU computes.
func checkLayers(cfg config.Config, dir string) []Check {
	path := cfg.Models.Answer
	if list, err := modelstore.Open(dir).List(); err == nil {
		for _, m := range list {
			if m.Name == path {
				path = m.Path
			}
		}
	}
	f, err := gguf.Open(path)
	if err != nil {
		return nil // checkModels has told
	}
	defer f.Close()
	places, err := Layers(f, cfg)
	if len(places) == 0 && err == nil {
		return nil
	}
	c := Check{Name: "layers", Found: "with the memory that is free now: " + placesText(places)}
	if err != nil {
		c.Problem = err.Error()
	}
	return []Check{c}
}

func checkServer(ctx context.Context, cfg config.Config) Check {
	c := client.ForAddr(cfg.Server.Addr, "")
	if !c.Alive(ctx, time.Second) {
		return Check{Name: "server", Found: "none on " + cfg.Server.Addr}
	}
	if err := c.Ready(ctx); err != nil {
		return Check{Name: "server", Problem: fmt.Sprintf("%s answers but is not ready: %v", c.Base(), err)}
	}
	return Check{Name: "server", Found: "ready on " + c.Base()}
}

// DatabaseURL is the connection string of the database in use: the configured
// one, or the private one if it runs.
func DatabaseURL(cfg config.Config) (string, error) {
	if cfg.Database.URL != "" {
		return cfg.Database.URL, nil
	}
	dir, err := home(cfg)
	if err != nil {
		return "", err
	}
	return localpg.RunningURL(filepath.Join(dir, "pg"))
}

func checkDatabase(ctx context.Context, cfg config.Config) []Check {
	url, err := DatabaseURL(cfg)
	if errors.Is(err, localpg.ErrNotRunning) {
		return []Check{{Name: "database", Found: "private PostgreSQL, started when it is needed"}}
	}
	if err != nil {
		return []Check{{Name: "database", Problem: err.Error()}}
	}
	pool, err := store.PoolConfig(url)
	if err != nil {
		return []Check{{Name: "database", Problem: err.Error()}}
	}
	conn, err := pgx.ConnectConfig(ctx, pool.ConnConfig)
	if err != nil {
		return []Check{{Name: "database", Problem: err.Error()}}
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return []Check{databaseVersions(ctx, conn), databaseContents(ctx, conn)}
}

func databaseVersions(ctx context.Context, conn *pgx.Conn) Check {
	c := Check{Name: "database"}
	var server string
	var vector *string
	err := conn.QueryRow(ctx, `SELECT current_setting('server_version'),
		(SELECT extversion FROM pg_extension WHERE extname = 'vector')`).Scan(&server, &vector)
	if err != nil {
		c.Problem = err.Error()
		return c
	}
	c.Found = "PostgreSQL " + strings.Fields(server)[0]
	if vector != nil {
		c.Found += ", pgvector " + *vector
	}
	if err := migrations.Check(ctx, conn); err != nil {
		c.Problem = err.Error()
	}
	return c
}

func databaseContents(ctx context.Context, conn *pgx.Conn) Check {
	c := Check{Name: "documents"}
	var documents, chunks int64
	err := conn.QueryRow(ctx, `SELECT count(*), coalesce(sum(chunks), 0)::bigint FROM ragd.documents`).Scan(&documents, &chunks)
	if err != nil {
		c.Found = "none: the schema is made at the first start"
		return c
	}
	c.Found = fmt.Sprintf("%d documents, %d chunks", documents, chunks)
	return c
}
