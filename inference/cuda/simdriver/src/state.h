// What the simulated driver keeps: contexts, memory, streams. One lock guards all.
#pragma once

#include <cuda.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "block.h"

// Work is one entry of a stream's queue.
typedef std::function<sim::Outcome()> Work;

struct CUfunc_st {
	const sim::Kernel *kernel;
	size_t max_dynamic = 48 << 10;
};

struct CUmod_st {
	std::map<std::string, std::unique_ptr<CUfunc_st>> functions;
};

struct CUstream_st {
	std::deque<Work> queue; // work that nobody has waited for yet
	bool capturing = false;
	std::vector<Work> captured;
};

struct CUevent_st {
	CUstream stream = nullptr; // where it was recorded
	bool reached = true;
};

struct CUgraph_st { std::vector<Work> work; };
struct CUgraphExec_st { std::vector<Work> work; };

struct CUctx_st {
	int device = 0;
	std::thread::id owner; // the thread it is current on
	CUresult broken = CUDA_SUCCESS;
	CUstream_st null_stream;
	std::set<CUstream> streams;
	std::set<CUmodule> modules;
	std::map<CUdeviceptr, size_t> memory;
};

namespace sim {

extern std::mutex mutex;
extern thread_local CUcontext current;

// enter is the beginning of every call: injected failures, then a context that is
// current here and not broken.
CUresult enter(const char *name, bool context = true);

// drain runs a stream's queue; a failure breaks the context.
CUresult drain(CUstream s);
// put queues work, or runs it into a capture.
CUresult put(CUstream s, Work w);
// of is the stream behind a handle, the null stream's being 0; nullptr: unknown.
CUstream of(CUstream s);

// allocate and release device memory; inside says whether a range was allocated.
CUresult allocate(CUcontext c, CUdeviceptr *p, size_t size);
CUresult release(CUcontext c, CUdeviceptr p);
bool inside(CUcontext c, CUdeviceptr p, size_t size);
bool pinned(const void *p, size_t size);
size_t total_memory();
// capability is the compute capability: 80 for 8.0.
int capability();

// load makes the functions of a PTX module, each of which has to be compiled for the
// host with the same parameters; complaint says what is wrong.
CUresult load(CUmodule m, const char *ptx, std::string &complaint);

void complain(const std::string &what);

} // namespace sim

#define ENTER(name)                                    \
	std::lock_guard<std::mutex> lock_(sim::mutex);     \
	if (CUresult r_ = sim::enter(name)) return r_
#define ENTER_NO_CONTEXT(name)                         \
	std::lock_guard<std::mutex> lock_(sim::mutex);     \
	if (CUresult r_ = sim::enter(name, false)) return r_
