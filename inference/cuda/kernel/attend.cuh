// What attention is on every device: its view of the paged cache, the sections of the
// positions and how they are joined.
#pragma once

#include "cache.cuh"

static const int section_tokens = 256;

#define NEVER __int_as_float(0xff800000) // -infinity

// View is what attention reads: keys and values of one layer, block tables, spans as
// {first row, rows, position of the first row, offset in the tables}, tiles as {span,
// first query row of the span}, and the shape.
template <class C> struct View {
	C keys, values;
	const int *tables;
	int heads, kvheads, dim;
	float scale, cap;
	int window, causal;

	// row is the row of a position.
	__device__ __forceinline__ size_t row(const int4 &span, int position, int head) const {
		return row_of(tables[span.w + position / cache_block], position % cache_block, head, kvheads);
	}

	// end and begin bound what row r of a span sees.
	__device__ __forceinline__ int end(const int4 &span, int r) const { return causal ? span.z + r + 1 : span.y; }
	__device__ __forceinline__ int begin(const int4 &span, int r) const { return causal && window ? max(0, span.z + r + 1 - window) : 0; }

	__device__ __forceinline__ float score(float dot) const {
		float s = scale * dot;
		return cap > 0 ? cap * tanhf(s / cap) : s;
	}
};

// Running is one row's state over sections: what attend_join keeps too.
struct Running {
	float top, sum;

	// add adds a section. What a row's elements come to is what they were times keep and
	// the section's times by.
	__device__ __forceinline__ void add(float section_top, float section_sum, float &keep, float &by) {
		keep = 1.0f;
		by = 0.0f;
		if (section_top == NEVER) return;
		float next = fmaxf(top, section_top);
		keep = top != NEVER ? expf(top - next) : 0.0f;
		by = expf(section_top - next);
		sum = sum * keep + section_sum * by;
		top = next;
	}
};

#define ATTEND_PARAMS const int *tables, const int4 *spans, const int2 *tiles, int heads, int kvheads, int dim, float scale, float cap, int window, int causal
