package kernel

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// generators are the commands of generate.go: output name, directory, flags.
var generators = []struct {
	out, dir string
	flags    []string
}{
	{"matmul", "matmul", []string{"-isa", "avx2"}},
	{"vnni", "matmul", []string{"-isa", "vnni"}},
	{"vnni512", "matmul", []string{"-isa", "vnni512"}},
	{"attend", "attend", []string{"-isa", "avx2"}},
	{"attend512", "attend", []string{"-isa", "avx512"}},
	{"vector", "vector", nil},
}

// TestGenerated: the generators reproduce the committed assembly and stubs byte
// for byte.
func TestGenerated(t *testing.T) {
	for _, g := range generators {
		t.Run(g.out, func(t *testing.T) {
			dir := t.TempDir()
			work, bin := filepath.Join(dir, "asm"), filepath.Join(dir, "generator")
			if err := os.Mkdir(work, 0o755); err != nil {
				t.Fatal(err)
			}
			run(t, "asm", "go", "build", "-o", bin, "./"+g.dir)
			files := []string{g.out + "_amd64.s", g.out + "_amd64.go"}
			args := append(g.flags, "-out", "../"+files[0], "-stubs", "../"+files[1], "-pkg", "kernel")
			run(t, work, bin, args...)
			for _, f := range files {
				if read(t, filepath.Join(dir, f)) != read(t, f) {
					t.Errorf("%s is not what the generator writes: run go generate", f)
				}
			}
		})
	}
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var (
	vectorRegister = regexp.MustCompile(`\b[XYZ]\d+\b`)
	instruction    = regexp.MustCompile(`^\t([A-Z][A-Z0-9]*)`)
)

// TestAssemblyIsVEX: a legacy SSE instruction among AVX ones stalls for a
// hundred nanoseconds, and so does Go's own SSE code after a return with dirty
// upper halves.
func TestAssemblyIsVEX(t *testing.T) {
	files, err := filepath.Glob("*_amd64.s")
	if err != nil || len(files) != len(generators) {
		t.Fatalf("%d assembly files, want %d (%v)", len(files), len(generators), err)
	}
	for _, f := range files {
		last := ""
		for i, line := range strings.Split(read(t, f), "\n") {
			op := instruction.FindStringSubmatch(line)
			if op == nil {
				continue
			}
			if vectorRegister.MatchString(line) && op[1][0] != 'V' {
				t.Errorf("%s:%d: %s is not VEX encoded", f, i+1, op[1])
			}
			if op[1] == "RET" && last != "VZEROUPPER" {
				t.Errorf("%s:%d: RET after %s", f, i+1, last)
			}
			last = op[1]
		}
	}
}
