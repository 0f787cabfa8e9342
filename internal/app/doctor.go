package app

import (
	"context"
	"errors"
	"fmt"
	"os"
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

// checkModels looks at the models that a start would open.
func checkModels(cfg config.Config, dir string) []Check {
	checks := []Check{checkModel("answer model", cfg.Models.Answer, dir)}
	if r := cfg.Inference.Remote; r.URL != "" {
		checks[0] = Check{Name: "answer model", Found: r.Model + " on " + r.URL}
		if r.Tokenizer != "" {
			checks = append(checks, checkModel("tokenizer", r.Tokenizer, dir))
		}
	}
	checks = append(checks, checkModel("embedding model", cfg.Models.Embedding, dir))
	if cfg.Rerank.Scorer == config.ScoreCross {
		checks = append(checks, checkModel("reranker", cfg.Models.Rerank, dir))
	}
	return checks
}

func checkModel(role, name, dir string) Check {
	path, here := findModel(dir, name)
	if !here && !looksLikePath(name) {
		return Check{Name: role, Problem: fmt.Sprintf("%s is not here yet: ragd pull %s", name, name)}
	}
	if err := readable(path); err != nil {
		return Check{Name: role, Problem: err.Error()}
	}
	return Check{Name: role, Found: name}
}

// findModel is the path of a model, and whether it is there without being fetched.
func findModel(dir, name string) (path string, here bool) {
	if looksLikePath(name) {
		_, err := os.Stat(name)
		return name, err == nil
	}
	return modelstore.Open(dir).Find(name)
}

// checkLayers says where the layers of the answer model would lie, where a GPU computes.
func checkLayers(cfg config.Config, dir string) []Check {
	path, here := findModel(dir, cfg.Models.Answer)
	if !here || cfg.Inference.Remote.URL != "" {
		return nil
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
