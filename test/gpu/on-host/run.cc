// Blocks of threads on the host: see cuda_runtime.h.
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include <ucontext.h>

#include "cuda_runtime.h"
#include "kernels/register.h"

namespace on_host {

Thread present;

namespace {

constexpr size_t kStackBytes = 64 << 10;
constexpr int kWarp = 32;

enum class State { ready, at_block, at_warp, ended };

struct Fiber {
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
  ucontext_t start;
  jmp_buf at;
  State state;
  bool begun;
  dim3 thread;
  uint64_t given;
};

std::vector<Fiber> fibers;
Fiber* running = nullptr;
jmp_buf scheduler;
const std::function<void()>* body = nullptr;

// Contexts begin by setcontext and go on by longjmp, which asks nothing of the system.
void begin() {
  (*body)();
  running->state = State::ended;
  _longjmp(scheduler, 1);
}

void resume(Fiber& fiber) {
  running = &fiber;
  present.thread = fiber.thread;
  if (_setjmp(scheduler) != 0) return;
  if (fiber.begun) _longjmp(fiber.at, 1);
  fiber.begun = true;
  getcontext(&fiber.start);
  fiber.start.uc_stack.ss_sp = fiber.stack.get();
  fiber.start.uc_stack.ss_size = kStackBytes;
  fiber.start.uc_link = nullptr;
  makecontext(&fiber.start, begin, 0);
  setcontext(&fiber.start);
}

void wait(State state) {
  running->state = state;
  if (_setjmp(running->at) == 0) _longjmp(scheduler, 1);
}

// Lets those go on who are all at one barrier. False when nobody can: some wait where others never come.
bool release(size_t num_threads) {
  bool any = false, all_at_block = true;
  for (size_t warp = 0; warp < num_threads; warp += kWarp) {
    const size_t end = std::min(num_threads, warp + kWarp);
    bool all_at_warp = true;
    for (size_t i = warp; i < end; i++) {
      if (fibers[i].state == State::ended) continue;
      all_at_warp = all_at_warp && fibers[i].state == State::at_warp;
      all_at_block = all_at_block && fibers[i].state == State::at_block;
    }
    if (!all_at_warp) continue;
    for (size_t i = warp; i < end; i++) {
      if (fibers[i].state == State::at_warp) {
        fibers[i].state = State::ready;
        any = true;
      }
    }
  }
  if (any || !all_at_block) return any;
  for (size_t i = 0; i < num_threads; i++) {
    if (fibers[i].state == State::at_block) fibers[i].state = State::ready;
  }
  return true;
}

// "forward", "backward" or a number to shuffle by.
std::vector<size_t> order_of(size_t count) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  const char* const name = std::getenv("TROUPE_CUDA_ON_HOST");
  const std::string wanted = name == nullptr ? "" : name;
  if (wanted == "backward") std::reverse(order.begin(), order.end());
  if (std::atoi(wanted.c_str()) > 0) std::shuffle(order.begin(), order.end(), std::mt19937(std::atoi(wanted.c_str())));
  return order;
}

void run_block(size_t num_threads, const std::vector<size_t>& order) {
  size_t ended = 0;
  while (ended < num_threads) {
    for (const size_t index : order) {
      if (fibers[index].state != State::ready) continue;
      resume(fibers[index]);
      if (fibers[index].state == State::ended) ended++;
    }
    if (ended < num_threads && !release(num_threads)) {
      std::fprintf(stderr, "[on_host] threads of a block wait at different barriers\n");
      std::abort();
    }
  }
}

}  // namespace

void run(dim3 blocks, dim3 threads, const std::function<void()>& kernel) {
  const size_t num_threads = size_t{threads.x} * threads.y * threads.z;
  if (fibers.size() < num_threads) fibers = std::vector<Fiber>(num_threads);
  body = &kernel;
  present.block_size = threads;
  present.grid_size = blocks;
  const std::vector<size_t> order = order_of(num_threads);
  for (const size_t block : order_of(size_t{blocks.x} * blocks.y)) {
    present.block = {static_cast<unsigned>(block % blocks.x), static_cast<unsigned>(block / blocks.x)};
    for (size_t i = 0; i < num_threads; i++) {
      fibers[i].state = State::ready;
      fibers[i].begun = false;
      fibers[i].thread = {static_cast<unsigned>(i % threads.x), static_cast<unsigned>(i / threads.x)};
    }
    run_block(num_threads, order);
  }
}

void wait_for_block() { wait(State::at_block); }

int lane() { return static_cast<int>(running - fibers.data()) % kWarp; }

uint64_t exchange(uint64_t own, int with) {
  running->given = own;
  wait(State::at_warp);
  const uint64_t taken = running[with - lane()].given;
  wait(State::at_warp);
  return taken;
}

}  // namespace on_host

namespace troupe {

const bool runs_on_host = (is_for_cuda = [](const at::Tensor&) { return std::getenv("TROUPE_CUDA_ON_HOST") != nullptr; });

}  // namespace troupe
