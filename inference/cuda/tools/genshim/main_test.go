package main

import (
	"strings"
	"testing"
)

func TestFunction(t *testing.T) {
	for list, want := range map[string]string{
		"void":                               "FORWARD(f, (void), (void), ())\n",
		"":                                   "FORWARD(f, (void), (void), ())\n",
		"CUdeviceptr *dptr, size_t bytesize": "FORWARD(f, (CUdeviceptr *, size_t), (CUdeviceptr * dptr, size_t bytesize), (dptr, bytesize))\n",
		"const char *name, unsigned long long flags":    "FORWARD(f, (const char *, unsigned long long), (const char * name, unsigned long long flags), (name, flags))\n",
		"const unsigned int box[], void **kernelParams": "FORWARD(f, (const unsigned int *, void **), (const unsigned int * box, void ** kernelParams), (box, kernelParams))\n",
	} {
		f := function{name: "f"}
		if err := f.parameters(list); err != nil {
			t.Errorf("%q: %v", list, err)
			continue
		}
		var out strings.Builder
		f.write(&out)
		if out.String() != want {
			t.Errorf("%q: %s", list, out.String())
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for name, header := range map[string]string{
		"few functions": "CUresult cuCtxDestroy(CUcontext ctx);",
		"odd parameter": "CUresult cuOdd(int (*callback)(void));",
	} {
		if _, err := parse(header); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A deprecated function is one like the others.
func TestParseAttributes(t *testing.T) {
	header := strings.Repeat("CUresult cuOne(int a);", least-1) + "__attribute__((deprecated)) CUresult cuOld(int a, int b);"
	list, err := parse(header)
	if err != nil || len(list) != least || list[least-1].name != "cuOld" {
		t.Errorf("%d functions, %v", len(list), err)
	}
}
