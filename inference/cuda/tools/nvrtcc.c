// nvrtcc compiles a CUDA source with a given libnvrtc, which needs no GPU.
//
//	nvrtcc LIBNVRTC SOURCE OUT -ptx|-cubin OPTION...
#include <dlfcn.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *library;

static void *find(const char *name) {
	void *f = dlsym(library, name);
	if (!f) fprintf(stderr, "nvrtcc: %s\n", dlerror()), exit(1);
	return f;
}

static void check(nvrtcResult r, const char *what) {
	if (r != NVRTC_SUCCESS) fprintf(stderr, "nvrtcc: %s failed (%d)\n", what, r), exit(1);
}

static char *read_file(const char *path) {
	FILE *f = fopen(path, "rb");
	if (!f) perror(path), exit(1);
	fseek(f, 0, SEEK_END);
	long n = ftell(f);
	rewind(f);
	char *text = calloc(1, n + 1);
	if (fread(text, 1, n, f) != (size_t)n) perror(path), exit(1);
	fclose(f);
	return text;
}

int main(int argc, char **argv) {
	if (argc < 5) return fprintf(stderr, "usage: nvrtcc LIBNVRTC SOURCE OUT -ptx|-cubin OPTION...\n"), 2;
	library = dlopen(argv[1], RTLD_NOW);
	if (!library) return fprintf(stderr, "nvrtcc: %s\n", dlerror()), 1;
	const char *source = argv[2], *out = argv[3], *base = strrchr(source, '/');
	int cubin = !strcmp(argv[4], "-cubin");
	nvrtcProgram p;
	check(((typeof(nvrtcCreateProgram) *)find("nvrtcCreateProgram"))(&p, read_file(source), base ? base + 1 : source, 0, NULL, NULL), "create");
	nvrtcResult r = ((typeof(nvrtcCompileProgram) *)find("nvrtcCompileProgram"))(p, argc - 5, (const char *const *)argv + 5);
	size_t n;
	check(((typeof(nvrtcGetProgramLogSize) *)find("nvrtcGetProgramLogSize"))(p, &n), "log");
	char *log = malloc(n);
	check(((typeof(nvrtcGetProgramLog) *)find("nvrtcGetProgramLog"))(p, log), "log");
	if (n > 1) fprintf(stderr, "%s\n", log);
	check(r, "compile");
	check(((typeof(nvrtcGetPTXSize) *)find(cubin ? "nvrtcGetCUBINSize" : "nvrtcGetPTXSize"))(p, &n), "size");
	char *code = malloc(n);
	check(((typeof(nvrtcGetPTX) *)find(cubin ? "nvrtcGetCUBIN" : "nvrtcGetPTX"))(p, code), "code");
	FILE *f = fopen(out, "wb");
	// PTX comes with its terminating zero, which is no part of the text.
	if (!f || fwrite(code, 1, cubin ? n : n - 1, f) != (cubin ? n : n - 1) || fclose(f)) return perror(out), 1;
	return 0;
}
