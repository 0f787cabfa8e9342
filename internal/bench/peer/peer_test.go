package peer

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ragd/ingest"
	"ragd/ingest/store"
	"ragd/internal/testenv"
	"ragd/retrieve/lexical"
)

// asServer makes the test program stand in for llama-server.
const asServer = "RAGD_TEST_AS_LLAMA_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		if err := stand(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// stand serves the three routes in the form that llama.cpp's server has
// (tools/server/README.md of llama.cpp: /health, /embedding, /completion).
func stand(args []string) error {
	flag := func(name string) string { return args[slices.Index(args, name)+1] }
	if flag("-m") == "broken.gguf" {
		return fmt.Errorf("error loading model: broken.gguf")
	}
	loaded := time.Now().Add(300 * time.Millisecond)
	http.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) {
		if time.Now().Before(loaded) {
			http.Error(w, `{"error":{"code":503,"message":"Loading model"}}`, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, `{"status":"ok"}`)
	})
	http.HandleFunc("/embedding", func(w http.ResponseWriter, r *http.Request) {
		var req struct{ Content string }
		json.NewDecoder(r.Body).Decode(&req)
		if !strings.HasPrefix(req.Content, "query: ") || !slices.Contains(args, "--embedding") {
			http.Error(w, "no query", http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, `[{"index":0,"embedding":[[0,1,0]]}]`)
	})
	http.HandleFunc("/completion", func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Prompt   string
			NPredict int  `json:"n_predict"`
			EOS      bool `json:"ignore_eos"`
		}
		json.NewDecoder(r.Body).Decode(&req)
		if !req.EOS {
			http.Error(w, "it may end early", http.StatusBadRequest)
			return
		}
		time.Sleep(20 * time.Millisecond)
		for i := range req.NPredict {
			fmt.Fprintf(w, "data: {\"content\":\"w%d\",\"stop\":false}\n\n", i)
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond)
		}
		fmt.Fprintf(w, "data: {\"content\":\"\",\"stop\":true,\"tokens_evaluated\":%d,\"tokens_predicted\":%d}\n\n", len(strings.Fields(req.Prompt)), req.NPredict)
	})
	return http.ListenAndServe("127.0.0.1:"+flag("--port"), nil)
}

// corpus fills a collection and returns what reaches it.
func corpus(t *testing.T) Config {
	pool := testenv.Database(t)
	s := store.New(pool, "default", lexical.Analyzer{})
	for path, vector := range map[string][]float32{"near.md": {0, 1, 0}, "far.md": {1, 0, 0}, "farther.md": {0, 0, 1}} {
		text := "About " + path + " and 기중기."
		e := ingest.Encoded{
			Document: ingest.Document{Path: path, Title: path, Hash: path, Type: "text/plain", Charset: "utf-8"},
			Chunks:   []ingest.Chunk{{Text: text, End: len(text), Tokens: 1}}, Vectors: [][]float32{vector},
		}
		if _, err := s.Put(t.Context(), "default", "m", "r", e); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(asServer, "1")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Server: self, Model: "model.gguf", Embedding: "embedding.gguf", Threads: 1, Context: 512,
		Database: pool.Config().ConnString(), Tenant: "default", Collection: "default", Candidates: 10,
	}
}

func TestPipeline(t *testing.T) {
	p, err := Start(t.Context(), corpus(t))
	if err != nil {
		t.Fatal(err)
	}
	for text, best := range map[string]string{"what?": "near.md", "farther.md 기중기": "", "' & | ! :* <->": "near.md"} {
		a, err := p.Ask(t.Context(), Question{Text: text, Prompt: "a prompt of five words", OutputTokens: 4})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if a.InputTokens != 5 || a.OutputTokens != 4 || len(a.Chunks) != 3 {
			t.Errorf("%s: %+v", text, a)
		}
		if found := a.Embed + a.Search; a.Embed <= 0 || a.Search <= 0 || a.TTFT < found+20*time.Millisecond || a.Total < a.TTFT+15*time.Millisecond {
			t.Errorf("%s: %+v", text, a)
		}
		var path string
		if err := p.db.QueryRow(t.Context(), "SELECT d.path FROM ragd.documents d JOIN ragd.chunks c ON c.document_id = d.id WHERE c.id = $1", a.Chunks[0]).Scan(&path); err != nil {
			t.Fatal(err)
		}
		if best != "" && path != best {
			t.Errorf("%s: found %s first, want %s", text, path, best)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for _, s := range []*server{p.generate, p.embed} {
		if s.cmd.ProcessState == nil {
			t.Errorf("%v still runs", s.cmd.Args)
		}
	}
}

func TestStartFails(t *testing.T) {
	good := corpus(t)
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no such program":   {func(c *Config) { c.Server = "/nowhere/llama-server" }, "/nowhere/llama-server"},
		"a model it cannot": {func(c *Config) { c.Embedding = "broken.gguf" }, "error loading model"},
		"no chunks":         {func(c *Config) { c.Collection = "empty" }, `collection "empty" holds no chunks`},
	} {
		cfg := good
		c.change(&cfg)
		if _, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
