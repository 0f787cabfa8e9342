// A block's threads are fibers on one thread of the system. A fiber runs until it
// waits (a barrier, a meeting of its warp) or ends; the next one in a ring goes on.
// When a round of the ring changes nothing, the threads wait for each other in ways
// that cannot end, which a device answers with a hang.

#include "block.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#if !defined(__x86_64__)
#error "the switch between fibers is written for x86-64"
#endif

// sim_switch saves the registers that calls preserve, stores the stack pointer at
// *save and goes on where the stack pointer load was saved.
extern "C" void sim_switch(void **save, void *load);
asm(R"(
.text
.globl sim_switch
.hidden sim_switch
.type sim_switch, @function
sim_switch:
	push %rbp
	push %rbx
	push %r12
	push %r13
	push %r14
	push %r15
	mov %rsp, (%rdi)
	mov %rsi, %rsp
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbx
	pop %rbp
	ret
)");

namespace sim {

__thread Thread *now;
Kernel *kernels;

static const int launch_failed = 719, illegal_address = 700;
static const size_t stack_bytes = 64 << 10, page = 4096, guard_bytes = 64;
// Fixed shared arrays of all kernels lie first, then the dynamic one.
static const size_t fixed_bytes = 4096;
static std::atomic<size_t> fixed_used{0};

size_t reserve_shared(size_t size) {
	size_t at = fixed_used.fetch_add((size + 15) / 16 * 16);
	if (fixed_used > fixed_bytes) fprintf(stderr, "simdriver: more than %zu bytes of fixed shared memory\n", fixed_bytes), abort();
	return at;
}

enum State { FRESH, WAITING, ENDED };

// Copy is 16 bytes on their way to shared memory, in the group of that number.
struct Copy {
	void *to;
	const void *from;
	unsigned group;
};

struct Fiber : Thread {
	void *sp = nullptr;
	char *stack = nullptr;
	std::vector<Copy> copies;
	unsigned groups = 0; // of copies, that have ended
	State state = FRESH;
	unsigned next = 0, prev = 0; // in the ring of those that have not ended
};

struct Warp {
	unsigned lanes = 0, arrived = 0, phase = 0;
	int kind = 0;
	uint32_t slots[2][32];
	Words words[2][32];
	Product products[2];
};

// Worker runs blocks one after the other on its own thread of the system.
struct Worker {
	const Launch *launch = nullptr;
	std::vector<Fiber> fibers;
	std::vector<Warp> warps;
	std::vector<char *> stacks; // free ones
	std::vector<char> shared_memory;
	void *main = nullptr; // where the block was started
	unsigned current = 0, live = 0, waiting = 0, barrier_phase = 0, idle = 0;
	int barrier_line = 0;
	void *fault_address = nullptr;
	char *rescue = stack() + page; // where a fault is reported from
	Outcome outcome;

	void block(unsigned x, unsigned y, unsigned z);
	void prepare(unsigned x, unsigned y, unsigned z);
	void go(unsigned i);
	void yield();
	void end();
	[[noreturn]] void fail(int code, const std::string &what);
	char *stack();
	void check_shared();
};

static thread_local Worker *worker;

void *shared(size_t offset) { return worker->shared_memory.data() + offset; }
void *dynamic_shared() { return worker->shared_memory.data() + fixed_bytes; }

char *Worker::stack() {
	if (!stacks.empty()) {
		char *s = stacks.back();
		stacks.pop_back();
		return s;
	}
	char *s = (char *)mmap(nullptr, stack_bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED) perror("simdriver: stack"), abort();
	mprotect(s, page, PROT_NONE);
	return s;
}

static void fiber_main() {
	Worker *w = worker;
	for (;;) {
		w->launch->kernel->call(w->launch->args.data());
		w->end();
	}
}

// end takes the running fiber out of the ring. It returns when the fiber's stack
// runs a fresh thread, and not otherwise.
void Worker::end() {
	Fiber &f = fibers[current];
	f.state = ENDED;
	live--;
	idle = 0;
	fibers[f.prev].next = f.next;
	fibers[f.next].prev = f.prev;
	if (live && waiting == live) { // all that are left wait at the barrier
		waiting = 0;
		barrier_phase++;
	}
	void *gone;
	if (!live) {
		stacks.push_back(f.stack);
		sim_switch(&gone, main);
	}
	Fiber &n = fibers[f.next];
	if (n.state != FRESH) {
		stacks.push_back(f.stack);
		current = f.next;
		now = &n;
		sim_switch(&gone, n.sp);
	}
	n.stack = f.stack;
	n.state = WAITING;
	current = f.next;
	now = &n;
}

// go switches from the running fiber to another.
void Worker::go(unsigned i) {
	Fiber &from = fibers[current], &to = fibers[i];
	current = i;
	now = &to;
	if (to.state == FRESH) {
		to.state = WAITING;
		to.stack = stack();
		// Tops differ by cache lines, else all stacks share the same sets.
		void **top = (void **)(to.stack + page + stack_bytes - 256 - 64 * (i % 32));
		*--top = nullptr;
		*--top = (void *)fiber_main;
		to.sp = top - 6;
	}
	sim_switch(&from.sp, to.sp);
}

void Worker::yield() {
	if (++idle > 2 * live + 2) fail(launch_failed, "threads wait for each other: divergent barrier or warp operation");
	unsigned next = fibers[current].next;
	if (next != current) go(next);
}

// fail ends the block from within a fiber.
void Worker::fail(int code, const std::string &what) {
	char at[128];
	const Thread *t = now;
	snprintf(at, sizeof at, "%s, block %u,%u,%u thread %u: ", launch->kernel->name, t->block.x, t->block.y, t->block.z, t->thread.x);
	outcome = {code, at + what};
	void *gone;
	sim_switch(&gone, main);
	abort();
}

void barrier(int line) {
	Worker *w = worker;
	if (w->waiting && w->barrier_line != line) w->fail(launch_failed, "threads wait at different barriers");
	w->barrier_line = line;
	w->idle = 0;
	if (++w->waiting == w->live) {
		w->waiting = 0;
		w->barrier_phase++;
		return;
	}
	for (unsigned phase = w->barrier_phase; w->barrier_phase == phase;) w->yield();
}

const uint32_t *meet(Meeting kind, uint32_t value) {
	Worker *w = worker;
	unsigned x = now->thread.x;
	Warp &p = w->warps[x / 32];
	if (p.arrived && p.kind != kind) w->fail(launch_failed, "lanes of a warp meet in different operations");
	p.kind = kind;
	unsigned phase = p.phase;
	uint32_t *slots = p.slots[phase % 2];
	slots[x % 32] = value;
	w->idle = 0;
	if (++p.arrived == p.lanes) {
		p.arrived = 0;
		p.phase++;
		return slots;
	}
	while (p.phase == phase) w->yield();
	return slots;
}

const Words *meet_words(Meeting kind, const uint32_t *words, size_t count) {
	unsigned x = now->thread.x;
	Warp &p = worker->warps[x / 32];
	const Words *all = p.words[p.phase % 2];
	memcpy(p.words[p.phase % 2][x % 32], words, 4 * count);
	meet(kind, 0);
	return all;
}

const float *meet_product(Meeting kind, const uint32_t *words, size_t count, void (*compute)(const Words *all, Product &product)) {
	unsigned x = now->thread.x;
	Warp &p = worker->warps[x / 32];
	unsigned turn = p.phase % 2;
	memcpy(p.words[turn][x % 32], words, 4 * count);
	if (p.arrived + 1 == p.lanes) compute(p.words[turn], p.products[turn]);
	meet(kind, 0);
	return p.products[turn];
}

void in_shared(const void *p) {
	Worker *w = worker;
	const char *begin = w->shared_memory.data(), *end = begin + fixed_bytes + w->launch->dynamic, *at = (const char *)p;
	if (at < begin || at + 16 > end || (uintptr_t)p % 16) w->fail(launch_failed, "not 16 bytes of shared memory at a multiple of 16");
}

void copy_async(void *to, const void *from) {
	in_shared(to);
	if ((uintptr_t)from % 16) worker->fail(launch_failed, "an asynchronous copy from between multiples of 16 bytes");
	Fiber &f = worker->fibers[worker->current];
	f.copies.push_back({to, from, f.groups});
	memset(to, 0xff, 16);
}

void copies_end() { worker->fibers[worker->current].groups++; }

void copies_wait_but(unsigned groups) {
	Fiber &f = worker->fibers[worker->current];
	size_t done = 0;
	for (; done < f.copies.size() && f.copies[done].group + groups < f.groups; done++) memcpy(f.copies[done].to, f.copies[done].from, 16);
	f.copies.erase(f.copies.begin(), f.copies.begin() + done);
}

static bool reversed() {
	const char *order = getenv("RAGD_SIM_ORDER");
	return order && !strcmp(order, "reverse");
}

void Worker::prepare(unsigned x, unsigned y, unsigned z) {
	unsigned n = launch->threads;
	fibers.resize(n);
	warps.resize((n + 31) / 32);
	bool back = reversed();
	for (unsigned i = 0; i < n; i++) {
		Fiber &f = fibers[i];
		f.thread = {i, 0, 0};
		f.block = {x, y, z};
		f.block_dim = {n, 1, 1};
		f.grid_dim = {launch->grid[0], launch->grid[1], launch->grid[2]};
		f.state = FRESH;
		f.copies.clear();
		f.groups = 0;
		f.next = (back ? i + n - 1 : i + 1) % n;
		f.prev = (back ? i + 1 : i + n - 1) % n;
	}
	for (unsigned i = 0; i < warps.size(); i++) {
		warps[i].lanes = n - 32 * i < 32 ? n - 32 * i : 32;
		warps[i].arrived = warps[i].phase = 0;
	}
	live = n;
	waiting = idle = 0;
	// Shared memory begins as NaN; what lies after it is checked afterwards.
	shared_memory.assign(fixed_bytes + launch->dynamic + guard_bytes, (char)0xff);
}

void Worker::block(unsigned x, unsigned y, unsigned z) {
	prepare(x, y, z);
	unsigned first = reversed() ? launch->threads - 1 : 0;
	current = first;
	Fiber &f = fibers[first];
	now = &f;
	f.state = WAITING;
	f.stack = stack();
	void **top = (void **)(f.stack + page + stack_bytes - 256);
	*--top = nullptr;
	*--top = (void *)fiber_main;
	f.sp = top - 6;
	sim_switch(&main, f.sp);
	if (outcome.code == 0) check_shared();
}

// check_shared notices writes past the end of the dynamic shared memory.
void Worker::check_shared() {
	const char *end = shared_memory.data() + fixed_bytes + launch->dynamic;
	for (size_t i = 0; i < guard_bytes; i++)
		if (end[i] != (char)0xff) outcome = {launch_failed, std::string(launch->kernel->name) + ": write past the end of shared memory"};
}

// A wild access of a kernel is caught here: the fiber goes on in faulted, on a stack
// that is surely there, and ends the block. Faults outside kernels are Go's.
static struct sigaction before_segv, before_bus;

static void faulted() {
	char what[64];
	snprintf(what, sizeof what, "illegal address %p", worker->fault_address);
	worker->fail(illegal_address, what);
}

static void on_fault(int sig, siginfo_t *info, void *context) {
	if (worker && worker->launch) {
		worker->fault_address = info->si_addr;
		ucontext_t *u = (ucontext_t *)context;
		u->uc_mcontext.gregs[REG_RSP] = (greg_t)(worker->rescue + stack_bytes - 8);
		u->uc_mcontext.gregs[REG_RIP] = (greg_t)faulted;
		return;
	}
	const struct sigaction &old = sig == SIGBUS ? before_bus : before_segv;
	if (old.sa_flags & SA_SIGINFO) old.sa_sigaction(sig, info, context);
	else signal(sig, SIG_DFL);
}

static void watch_faults() {
	struct sigaction a = {};
	a.sa_sigaction = on_fault;
	a.sa_flags = SA_SIGINFO | SA_ONSTACK;
	sigfillset(&a.sa_mask);
	sigaction(SIGSEGV, &a, &before_segv);
	sigaction(SIGBUS, &a, &before_bus);
}

// Crew is the threads of the simulator. Blocks are handed out one at a time.
struct Crew {
	std::mutex mutex;
	std::condition_variable wake, done;
	const Launch *launch = nullptr;
	std::atomic<unsigned> next{0};
	unsigned blocks = 0, round = 0, busy = 0;
	std::atomic<bool> stop{false};
	Outcome outcome;
	std::vector<std::thread> threads;

	Crew() {
		watch_faults();
		const char *n = getenv("RAGD_SIM_THREADS");
		int count = n ? atoi(n) : (int)std::thread::hardware_concurrency();
		for (int i = 0; i < std::min(std::max(count, 1), 16); i++) threads.emplace_back([this] { serve(); });
	}

	void serve() {
		sigset_t all;
		sigfillset(&all);
		for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&all, s);
		pthread_sigmask(SIG_SETMASK, &all, nullptr);
		std::vector<char> signal_stack(64 << 10);
		stack_t ss = {};
		ss.ss_sp = signal_stack.data();
		ss.ss_size = signal_stack.size();
		sigaltstack(&ss, nullptr);
		Worker w;
		worker = &w;
		std::unique_lock<std::mutex> lock(mutex);
		for (unsigned seen = 0;;) {
			wake.wait(lock, [&] { return round != seen; });
			seen = round;
			w.launch = launch;
			w.outcome = {};
			lock.unlock();
			work(w);
			w.launch = nullptr;
			lock.lock();
			if (w.outcome.code && !outcome.code) outcome = w.outcome;
			if (--busy == 0) done.notify_all();
		}
	}

	void work(Worker &w) {
		unsigned x = w.launch->grid[0], y = w.launch->grid[1];
		for (unsigned i; !stop && (i = next++) < blocks;) {
			w.block(i % x, i / x % y, i / x / y);
			if (w.outcome.code) stop = true;
		}
	}

	Outcome run(const Launch &l) {
		std::unique_lock<std::mutex> lock(mutex);
		launch = &l;
		next = 0;
		blocks = l.grid[0] * l.grid[1] * l.grid[2];
		stop = false;
		outcome = {};
		busy = threads.size();
		round++;
		wake.notify_all();
		done.wait(lock, [&] { return busy == 0; });
		return outcome;
	}
};

Outcome run(const Launch &l) {
	static Crew *crew = new Crew; // its threads outlive everything
	return crew->run(l);
}

} // namespace sim
