// Running the blocks of a kernel.
#pragma once

#include <cstddef>
#include <string>

#include "sim.h"

namespace sim {

// Launch is a kernel with its shape and packed arguments.
struct Launch {
	const Kernel *kernel;
	unsigned grid[3], threads;
	size_t dynamic;
	std::string args;
};

// Outcome of a launch: a driver code (0: done) and what happened.
struct Outcome {
	int code = 0;
	std::string what;
};

// run runs all blocks on the simulator's threads.
Outcome run(const Launch &l);

} // namespace sim
