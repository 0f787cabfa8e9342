// The simulated driver: devices, contexts, injected failures. Settings come from the
// environment:
//
//	RAGD_SIM_DEVICES  how many devices there are (1)
//	RAGD_SIM_MEMORY   bytes of each device (4 GiB)
//	RAGD_SIM_CAPABILITY  compute capability, such as "8.0" (7.0)
//	RAGD_SIM_SPEED    multiprocessors, their clock and the memory's in kHz, bits of the
//	                  memory's bus: "80:1530000:877000:4096"
//	RAGD_SIM_THREADS  threads that run blocks (one a CPU)
//	RAGD_SIM_ORDER    "reverse" starts the threads of a block from the last
//	RAGD_SIM_FAIL     "cuMemAlloc:3:2": the third call of it since the value was set
//	                  returns code 2; "*" counts all calls

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "state.h"

namespace sim {

std::mutex mutex;
thread_local CUcontext current;
static std::set<CUcontext> contexts;

void complain(const std::string &what) { fprintf(stderr, "simdriver: %s\n", what.c_str()); }

// sticky are the codes that break a context.
static bool sticky(int code) { return code == 700 || code == 719 || code == 214 || code == 702 || code == 709 || code == 715; }

// injected is the failure that RAGD_SIM_FAIL asks for at this call.
static CUresult injected(const char *name) {
	static std::string seen;
	static long left;
	static int code;
	static std::string target;
	const char *spec = getenv("RAGD_SIM_FAIL");
	if (!spec) spec = "";
	if (seen != spec) {
		seen = spec;
		char what[64] = "";
		left = 0;
		if (sscanf(spec, "%63[^:]:%ld:%d", what, &left, &code) != 3) left = 0;
		target = what;
	}
	if (left <= 0 || (target != "*" && target != name)) return CUDA_SUCCESS;
	return --left == 0 ? (CUresult)code : CUDA_SUCCESS;
}

CUresult enter(const char *name, bool context) {
	if (CUresult r = injected(name)) {
		if (current && sticky(r)) current->broken = r;
		return r;
	}
	if (!context) return CUDA_SUCCESS;
	if (!current || !contexts.count(current)) return CUDA_ERROR_INVALID_CONTEXT;
	return current->broken;
}

int capability() {
	int major = 7, minor = 0;
	if (const char *c = getenv("RAGD_SIM_CAPABILITY")) sscanf(c, "%d.%d", &major, &minor);
	return 10 * major + minor;
}

// speed is one of the numbers of RAGD_SIM_SPEED.
static int speed(int part) {
	int v[4] = {80, 1530000, 877000, 4096};
	if (const char *s = getenv("RAGD_SIM_SPEED")) sscanf(s, "%d:%d:%d:%d", v, v + 1, v + 2, v + 3);
	return v[part];
}

static int devices() {
	const char *n = getenv("RAGD_SIM_DEVICES");
	return n ? atoi(n) : 1;
}

static void destroy(CUcontext c) {
	while (!c->memory.empty()) release(c, c->memory.begin()->first);
	for (CUstream s : c->streams) delete s;
	for (CUmodule m : c->modules) delete m;
	contexts.erase(c);
	delete c;
}

} // namespace sim

using sim::current;

extern "C" {

CUresult cuInit(unsigned) {
	ENTER_NO_CONTEXT("cuInit");
	return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *v) {
	*v = 12010;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *n) {
	ENTER_NO_CONTEXT("cuDeviceGetCount");
	*n = sim::devices();
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *d, int ordinal) {
	ENTER_NO_CONTEXT("cuDeviceGet");
	if (ordinal < 0 || ordinal >= sim::devices()) return CUDA_ERROR_INVALID_DEVICE;
	*d = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int n, CUdevice) {
	snprintf(name, n, "simulated device");
	return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice) {
	*bytes = sim::total_memory();
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice) {
	switch (a) {
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *v = sim::capability() / 10; break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *v = sim::capability() % 10; break;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *v = sim::speed(0); break;
	case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *v = sim::speed(1); break;
	case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *v = sim::speed(2); break;
	case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *v = sim::speed(3); break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate(CUcontext *c, unsigned, CUdevice device) {
	ENTER_NO_CONTEXT("cuCtxCreate");
	current = *c = new CUctx_st;
	current->device = device;
	current->owner = std::this_thread::get_id();
	sim::contexts.insert(current);
	return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext c) {
	ENTER_NO_CONTEXT("cuCtxDestroy");
	if (!sim::contexts.count(c)) return CUDA_ERROR_INVALID_CONTEXT;
	sim::destroy(c);
	if (current == c) current = nullptr;
	return CUDA_SUCCESS;
}

// A context belongs to one thread at a time here, which a real driver does not ask.
CUresult cuCtxSetCurrent(CUcontext c) {
	ENTER_NO_CONTEXT("cuCtxSetCurrent");
	std::thread::id self = std::this_thread::get_id(), none;
	if (c && (!sim::contexts.count(c) || (c->owner != none && c->owner != self))) return CUDA_ERROR_INVALID_CONTEXT;
	if (current && sim::contexts.count(current)) current->owner = none;
	current = c;
	if (c) c->owner = self;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *c) {
	*c = current;
	return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult r, const char **text) {
	*text = r == CUDA_ERROR_NO_DEVICE ? "no CUDA-capable device is detected" : "an error of the simulated driver";
	return CUDA_SUCCESS;
}
}
