package importtest

import (
	"os/exec"
	"strings"
	"testing"
)

const module = "ragd/"

// stages are the rooms of the two roads; their sub-packages follow the same rules.
var stages = []string{"ingest", "retrieve", "rerank", "prompt"}

// allowed lists what each room may import of ragd, besides its own sub-packages.
// A sub-package may also import its parent.
var allowed = map[string][]string{
	"ingest":               {},
	"ingest/store":         {"migrations", "ingest/postings"},
	"retrieve":             {"ingest"},
	"retrieve/hybrid":      {"ingest", "retrieve"}, // puts the sides together
	"retrieve/internal":    {"retrieve"},
	"rerank":               {"retrieve", "ingest"},
	"prompt":               {"retrieve", "ingest"},
	"telemetry":            {},
	"migrations":           {},
	"inference/quant":      {},
	"inference/tokenizer":  {},
	"inference/cpu/kernel": {},
	"inference/gguf":       {"inference/quant"},
	"inference/safetensors": {
		"inference/quant",
	},
	"inference/sample":   {},
	"inference/kvcache":  {"inference/model"},
	"inference/schedule": {"inference/model", "inference/kvcache"},
	"inference/model": {
		"inference/gguf", "inference/safetensors", "inference/quant", "inference/tokenizer",
	},
	"inference/cpu":  {"inference/model", "inference/cpu/kernel", "inference/quant"},
	"inference/cuda": {"inference/model", "inference/quant"},
	"inference/encode": {
		"inference/model", "inference/gguf", "inference/safetensors", "inference/tokenizer", "inference/quant",
	},
	"inference/engine": {
		"inference/model", "inference/kvcache", "inference/schedule", "inference/sample", "inference/tokenizer",
	},
	"inference/remote": {"inference/engine", "inference/tokenizer", "inference/sample"},
	"internal/answer":  {"ingest", "retrieve", "rerank", "prompt", "telemetry"},
	"internal/httpapi": {"ingest", "internal/answer", "internal/keys", "internal/tenant", "telemetry"},
	"internal/client":  {"ingest", "internal/answer"},
	"internal/config":  {"telemetry/cost"},
	"internal/webui":   {"telemetry"},
	"internal/localpg": {},
	"internal/watch":   {},
	"internal/tenant":  {},
	"internal/keys":    {"internal/tenant"},
	"internal/modelstore": {
		"inference/gguf", "inference/quant",
	},
}

// everything may be seen from here.
var unruled = []string{"internal/app", "internal/testenv", "internal/importtest", "internal/bench", "internal/eval", "cmd/ragd", "deploy", "examples"}

// forbidden are modules that a room must not use.
var forbidden = map[string][]string{
	"inference": {"github.com/jackc/pgx", "github.com/gin-gonic/gin"},
	"prompt":    {"github.com/jackc/pgx", "github.com/gin-gonic/gin"},
	"rerank":    {"github.com/jackc/pgx", "github.com/gin-gonic/gin"},
}

type pkg struct {
	path    string
	imports []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var list []pkg
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		f := strings.Fields(line)
		list = append(list, pkg{strings.TrimPrefix(f[0], module), f[1:]})
	}
	return list
}

func TestImportsRunOneWay(t *testing.T) {
	seen := 0
	for _, p := range packages(t) {
		if under(p.path, unruled...) {
			continue
		}
		room, ok := roomOf(p.path)
		if !ok {
			t.Errorf("%s is in no room: give it a rule", p.path)
			continue
		}
		seen++
		for _, imp := range p.imports {
			own, mine := strings.CutPrefix(imp, module)
			switch {
			case !mine:
				for area, modules := range forbidden {
					if under(p.path, area) && under(imp, modules...) {
						t.Errorf("%s imports %s", p.path, imp)
					}
				}
			case own == parent(p.path), under(own, p.path), under(own, allowed[room]...), sibling(p.path, own):
			default:
				t.Errorf("%s imports %s", p.path, own)
			}
		}
	}
	if seen < 15 {
		t.Errorf("only %d packages were looked at", seen)
	}
}

func TestStagesNeverImportInference(t *testing.T) {
	for _, p := range packages(t) {
		if !under(p.path, stages...) {
			continue
		}
		for _, imp := range p.imports {
			if under(imp, module+"inference") {
				t.Errorf("%s imports %s: hand it in through an interface", p.path, imp)
			}
		}
	}
}

// sibling allows parts of one stage to share the stage's helpers below
// <stage>/internal.
func sibling(path, imp string) bool {
	room, _, _ := strings.Cut(path, "/")
	return under(imp, room+"/internal")
}

// roomOf finds the longest rule that covers a package.
func roomOf(path string) (string, bool) {
	for p := path; p != ""; p = parent(p) {
		if _, ok := allowed[p]; ok {
			return p, true
		}
	}
	return "", path == "inference"
}

func parent(path string) string {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return ""
	}
	return path[:i]
}

func under(path string, roots ...string) bool {
	for _, r := range roots {
		if path == r || strings.HasPrefix(path, r+"/") {
			return true
		}
	}
	return false
}
