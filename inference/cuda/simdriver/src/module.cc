// Modules: the real PTX is read, so that a kernel the host code lacks, or one with
// other parameters, is refused.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <regex>

#include "state.h"

namespace sim {

static const Kernel *find(const std::string &name) {
	for (const Kernel *k = kernels; k; k = k->next)
		if (name == k->name) return k;
	return nullptr;
}

// width is the size of a scalar PTX type: ".u64" has 8 bytes.
static size_t width(const std::string &type) { return strtoul(type.c_str() + 1, nullptr, 10) / 8; }

static bool fits(const Kernel *k, const std::vector<size_t> &sizes) {
	if (sizes.size() != k->count) return false;
	for (size_t i = 0; i < k->count; i++)
		if (sizes[i] != k->sizes[i]) return false;
	return true;
}

CUresult load(CUmodule m, const char *ptx, std::string &complaint) {
	std::string text = ptx;
	if (text.find(".version") == std::string::npos) return complaint = "no PTX", CUDA_ERROR_INVALID_PTX;
	size_t target = text.find(".target sm_");
	if (target == std::string::npos) return complaint = "no target", CUDA_ERROR_INVALID_PTX;
	if (atoi(text.c_str() + target + strlen(".target sm_")) > capability()) return complaint = "compiled for a later device", CUDA_ERROR_NO_BINARY_FOR_GPU;
	static const std::regex parameter("\\.param\\s+\\.(\\w+)\\s+\\w+");
	for (size_t at = 0; (at = text.find(".entry ", at)) != std::string::npos;) {
		at += strlen(".entry ");
		size_t open = text.find('(', at), close = text.find(')', open);
		if (close == std::string::npos) return complaint = "entry without parameters", CUDA_ERROR_INVALID_PTX;
		std::string name = text.substr(at, open - at), list = text.substr(open, close - open);
		const Kernel *k = find(name);
		if (!k) return complaint = name + ": not compiled for the host", CUDA_ERROR_INVALID_PTX;
		std::vector<size_t> sizes;
		for (std::sregex_iterator i(list.begin(), list.end(), parameter), none; i != none; ++i) sizes.push_back(width((*i)[1]));
		if (!fits(k, sizes)) return complaint = name + ": other parameters than the host's", CUDA_ERROR_INVALID_PTX;
		m->functions[name].reset(new CUfunc_st{k});
	}
	return CUDA_SUCCESS;
}

// pack copies arguments given one by one.
static std::string pack(const Kernel *k, void **params) {
	std::string out;
	for (size_t i = 0; i < k->count; i++) {
		out.resize((out.size() + k->aligns[i] - 1) / k->aligns[i] * k->aligns[i]);
		out.append((const char *)params[i], k->sizes[i]);
	}
	return out;
}

static size_t packed_size(const Kernel *k) {
	size_t end = 0;
	for (size_t i = 0; i < k->count; i++) end = (end + k->aligns[i] - 1) / k->aligns[i] * k->aligns[i] + k->sizes[i];
	return end;
}

// unpack reads the argument buffer of a launch's extra options.
static bool unpack(void **extra, std::string &args) {
	const char *buffer = nullptr;
	size_t size = 0;
	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = (const char *)extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *(size_t *)extra[1];
		else return false;
	}
	args.assign(buffer, size);
	return true;
}

} // namespace sim

extern "C" {

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n, CUjit_option *options, void **values) {
	ENTER("cuModuleLoadDataEx");
	std::string complaint;
	std::unique_ptr<CUmod_st> m(new CUmod_st);
	CUresult r = sim::load(m.get(), (const char *)image, complaint);
	char *log = nullptr;
	size_t size = 0;
	for (unsigned i = 0; i < n; i++) {
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log = (char *)values[i];
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) size = (size_t)values[i];
	}
	if (log && size) snprintf(log, size, "%s", complaint.c_str());
	if (r) return r;
	sim::current->modules.insert(*module = m.release());
	return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule m) {
	ENTER("cuModuleUnload");
	if (!sim::current->modules.erase(m)) return CUDA_ERROR_INVALID_HANDLE;
	delete m;
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
	ENTER("cuModuleGetFunction");
	auto it = m->functions.find(name);
	if (it == m->functions.end()) return CUDA_ERROR_NOT_FOUND;
	*f = it->second.get();
	return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int value) {
	ENTER("cuFuncSetAttribute");
	if (a != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 || value > 99 << 10) return CUDA_ERROR_INVALID_VALUE;
	f->max_dynamic = value;
	return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned dynamic, CUstream s, void **params, void **extra) {
	ENTER("cuLaunchKernel");
	if (!gx || !gy || !gz || gx > 0x7fffffffu || gy > 65535 || gz > 65535 || !bx || by != 1 || bz != 1 || bx > 1024) return CUDA_ERROR_INVALID_VALUE;
	if (dynamic > f->max_dynamic) return CUDA_ERROR_INVALID_VALUE;
	sim::Launch l = {f->kernel, {gx, gy, gz}, bx, dynamic, ""};
	if (params) l.args = sim::pack(f->kernel, params);
	else if (!extra || !sim::unpack(extra, l.args)) return CUDA_ERROR_INVALID_VALUE;
	if (l.args.size() != sim::packed_size(f->kernel)) {
		sim::complain(std::string(f->kernel->name) + ": " + std::to_string(l.args.size()) + " bytes of arguments");
		return CUDA_ERROR_INVALID_VALUE;
	}
	return sim::put(s, [l] { return sim::run(l); });
}
}
