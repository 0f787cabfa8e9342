// Device memory is host memory of its own pages: each allocation ends at a page that
// nobody may touch, and begins as NaN.

#include "state.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

namespace sim {

static const size_t page = 4096, alignment = 16;
static std::map<int, size_t> used; // of each device
static std::map<const char *, size_t> host; // pinned

size_t total_memory() {
	const char *m = getenv("RAGD_SIM_MEMORY");
	return m ? strtoull(m, nullptr, 10) : size_t(4) << 30;
}

static size_t pages(size_t size) { return (size + page - 1) / page * page; }

CUresult allocate(CUcontext c, CUdeviceptr *p, size_t size) {
	if (size == 0) return CUDA_ERROR_INVALID_VALUE;
	if (used[c->device] + size > total_memory()) return CUDA_ERROR_OUT_OF_MEMORY;
	size_t whole = pages(size);
	char *m = (char *)mmap(nullptr, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
	mprotect(m + whole, page, PROT_NONE);
	memset(m, 0xff, whole);
	*p = (CUdeviceptr)(m + (whole - size) / alignment * alignment);
	c->memory[*p] = size;
	used[c->device] += size;
	return CUDA_SUCCESS;
}

CUresult release(CUcontext c, CUdeviceptr p) {
	auto it = c->memory.find(p);
	if (it == c->memory.end()) return CUDA_ERROR_INVALID_VALUE;
	size_t size = it->second;
	munmap((void *)(p / page * page), pages(size) + page);
	used[c->device] -= size;
	c->memory.erase(it);
	return CUDA_SUCCESS;
}

bool inside(CUcontext c, CUdeviceptr p, size_t size) {
	auto it = c->memory.upper_bound(p);
	if (it == c->memory.begin()) return false;
	--it;
	return p + size <= it->first + it->second;
}

bool pinned(const void *p, size_t size) {
	auto it = host.upper_bound((const char *)p);
	if (it == host.begin()) return false;
	--it;
	return (const char *)p + size <= it->first + it->second;
}

} // namespace sim

extern "C" {

CUresult cuMemAlloc(CUdeviceptr *p, size_t size) {
	ENTER("cuMemAlloc");
	return sim::allocate(sim::current, p, size);
}

CUresult cuMemFree(CUdeviceptr p) {
	ENTER("cuMemFree");
	// Freeing waits for the device.
	if (CUresult r = sim::drain(&sim::current->null_stream)) return r;
	for (CUstream s : sim::current->streams)
		if (CUresult r = sim::drain(s)) return r;
	return sim::release(sim::current, p);
}

CUresult cuMemGetInfo(size_t *left, size_t *total) {
	ENTER("cuMemGetInfo");
	*total = sim::total_memory();
	*left = *total - sim::used[sim::current->device];
	return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **p, size_t size, unsigned) {
	ENTER("cuMemHostAlloc");
	*p = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
	if (!*p) return CUDA_ERROR_OUT_OF_MEMORY;
	sim::host[(const char *)*p] = size;
	return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *p) {
	ENTER("cuMemFreeHost");
	if (!sim::host.erase((const char *)p)) return CUDA_ERROR_INVALID_VALUE;
	free(p);
	return CUDA_SUCCESS;
}

// A copy from pageable memory returns when the source was read; the destination has
// it when the null stream is waited for, and other streams may run before.
CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t size) {
	ENTER("cuMemcpyHtoD");
	if (!sim::inside(sim::current, to, size)) return CUDA_ERROR_INVALID_VALUE;
	if (CUresult r = sim::drain(&sim::current->null_stream)) return r;
	std::string staged((const char *)from, size);
	return sim::put(nullptr, [to, staged = std::move(staged)] { return memcpy((void *)to, staged.data(), staged.size()), sim::Outcome{}; });
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t size) {
	ENTER("cuMemcpyDtoH");
	if (!sim::inside(sim::current, from, size)) return CUDA_ERROR_INVALID_VALUE;
	if (CUresult r = sim::drain(&sim::current->null_stream)) return r;
	memcpy(to, (const void *)from, size);
	return CUDA_SUCCESS;
}

// Asynchronous copies take place when the stream is waited for, so memory that was
// reused too early is noticed. Only pinned memory may take part.
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t size, CUstream s) {
	ENTER("cuMemcpyHtoDAsync");
	if (!sim::inside(sim::current, to, size) || !sim::pinned(from, size)) return CUDA_ERROR_INVALID_VALUE;
	return sim::put(s, [=] { return memcpy((void *)to, from, size), sim::Outcome{}; });
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t size, CUstream s) {
	ENTER("cuMemcpyDtoHAsync");
	if (!sim::inside(sim::current, from, size) || !sim::pinned(to, size)) return CUDA_ERROR_INVALID_VALUE;
	return sim::put(s, [=] { return memcpy(to, (const void *)from, size), sim::Outcome{}; });
}

// Copies of pieces: between pinned and device memory only.
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *c, CUstream s) {
	ENTER("cuMemcpy2DAsync");
	bool up = c->srcMemoryType == CU_MEMORYTYPE_HOST && c->dstMemoryType == CU_MEMORYTYPE_DEVICE;
	if (!up && (c->srcMemoryType != CU_MEMORYTYPE_DEVICE || c->dstMemoryType != CU_MEMORYTYPE_HOST)) return CUDA_ERROR_INVALID_VALUE;
	const char *host = up ? (const char *)c->srcHost : (const char *)c->dstHost, *device = (const char *)(up ? c->dstDevice : c->srcDevice);
	size_t host_pitch = up ? c->srcPitch : c->dstPitch, device_pitch = up ? c->dstPitch : c->srcPitch, width = c->WidthInBytes, height = c->Height;
	if (!width || !height || host_pitch < width || device_pitch < width) return CUDA_ERROR_INVALID_VALUE;
	if (!sim::inside(sim::current, (CUdeviceptr)device, (height - 1) * device_pitch + width) || !sim::pinned(host, (height - 1) * host_pitch + width)) return CUDA_ERROR_INVALID_VALUE;
	return sim::put(s, [=] {
		for (size_t i = 0; i < height; i++) {
			char *h = (char *)host + i * host_pitch, *d = (char *)device + i * device_pitch;
			memcpy(up ? d : h, up ? h : d, width);
		}
		return sim::Outcome{};
	});
}
}
