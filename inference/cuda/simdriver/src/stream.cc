// Streams do nothing until somebody waits for them: what was not waited for is seen
// to be stale.

#include <cstdio>

#include "state.h"

namespace sim {

CUstream of(CUstream s) {
	if (!s) return &current->null_stream;
	return current->streams.count(s) ? s : nullptr;
}

CUresult drain(CUstream s) {
	while (!s->queue.empty()) {
		Work w = std::move(s->queue.front());
		s->queue.pop_front();
		Outcome o = w();
		if (!o.code) continue;
		complain(o.what);
		s->queue.clear();
		return current->broken = (CUresult)o.code;
	}
	return CUDA_SUCCESS;
}

CUresult put(CUstream handle, Work w) {
	CUstream s = of(handle);
	if (!s) return CUDA_ERROR_INVALID_HANDLE;
	if (s->capturing) s->captured.push_back(std::move(w));
	else s->queue.push_back(std::move(w));
	return CUDA_SUCCESS;
}

} // namespace sim

using sim::current;

extern "C" {

CUresult cuStreamCreate(CUstream *s, unsigned) {
	ENTER("cuStreamCreate");
	current->streams.insert(*s = new CUstream_st);
	return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream s) {
	ENTER("cuStreamDestroy");
	if (!current->streams.count(s)) return CUDA_ERROR_INVALID_HANDLE;
	CUresult r = sim::drain(s);
	current->streams.erase(s);
	delete s;
	return r;
}

CUresult cuStreamSynchronize(CUstream handle) {
	ENTER("cuStreamSynchronize");
	CUstream s = sim::of(handle);
	if (!s) return CUDA_ERROR_INVALID_HANDLE;
	if (s->capturing) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	return sim::drain(s);
}

CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned) {
	ENTER("cuStreamWaitEvent");
	return sim::put(s, [e] {
		if (!e->reached) sim::drain(e->stream);
		return sim::Outcome{};
	});
}

CUresult cuStreamBeginCapture(CUstream s, CUstreamCaptureMode) {
	ENTER("cuStreamBeginCapture");
	if (!s || !sim::of(s) || s->capturing) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	s->capturing = true;
	return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream s, CUgraph *g) {
	ENTER("cuStreamEndCapture");
	if (!s || !sim::of(s) || !s->capturing) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	s->capturing = false;
	*g = new CUgraph_st{std::move(s->captured)};
	s->captured.clear();
	return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph g) {
	ENTER("cuGraphDestroy");
	delete g;
	return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *e, CUgraph g, unsigned long long) {
	ENTER("cuGraphInstantiateWithFlags");
	*e = new CUgraphExec_st{g->work};
	return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec e) {
	ENTER("cuGraphExecDestroy");
	delete e;
	return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec e, CUstream s) {
	ENTER("cuGraphLaunch");
	for (const Work &w : e->work)
		if (CUresult r = sim::put(s, w)) return r;
	return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *e, unsigned) {
	ENTER("cuEventCreate");
	*e = new CUevent_st;
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent e) {
	ENTER("cuEventDestroy");
	delete e;
	return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent e, CUstream handle) {
	ENTER("cuEventRecord");
	e->stream = sim::of(handle);
	e->reached = false;
	return sim::put(handle, [e] { return e->reached = true, sim::Outcome{}; });
}

CUresult cuEventSynchronize(CUevent e) {
	ENTER("cuEventSynchronize");
	return e->reached ? CUDA_SUCCESS : sim::drain(e->stream);
}

// Time does not pass on the simulated device.
CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to) {
	ENTER("cuEventElapsedTime");
	if (!from->reached || !to->reached) return CUDA_ERROR_NOT_READY;
	*ms = 0;
	return CUDA_SUCCESS;
}
}
