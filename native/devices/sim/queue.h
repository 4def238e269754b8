// A stream: tasks in order, run late by a thread of its own.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "devices/sim/schedule.h"

namespace troupe::sim {

struct Task {
  std::string name;  // of the operator, for errors
  std::function<void()> run;
};

// Thread-safe, never destroyed. Its thread begins with the first task. Places count from 1.
class Queue {
 public:
  Queue(c10::DeviceIndex device, c10::StreamId id);

  // Puts a task behind the others; returns its place. It runs when the schedule says, or when a thread or queue waits for it.
  uint64_t push(std::string name, std::function<void()> run);

  // The same for what poisons memory.
  void push_free(std::function<void()> run);

  // Whether the task at a place has run. Asking has it run some time.
  bool has_passed(uint64_t place);
  // Waits until it has.
  void wait(uint64_t place);
  uint64_t last_place();
  bool is_idle() { return has_passed(last_place()); }

  // Waits for all tasks; throws what the first of them that failed said, once.
  void synchronize();
  // Throws the first failure that was not reported yet.
  void raise();

  // The failure that was not reported yet, for a queue that waits for this one by an event; "" for none.
  std::string failure();
  void fail(const std::string& failure);

  // Makes it a stream of which nothing runs: its tasks go behind those in `tasks`, or nowhere if that is null. To wait for a captured
  // one throws.
  void keep_in(std::vector<Task>* tasks);
  // Memory that was taken for such a stream.
  void add_memory(void* begin, size_t bytes) { memory_.emplace_back(begin, bytes); }
  const std::vector<std::pair<void*, size_t>>& memory() const { return memory_; }
  bool is_kept() const { return is_kept_; }

  // Has the thread end after the task that it runs; what is left is dropped.
  void stop();

  c10::Stream stream() const;
  const c10::DeviceIndex device;
  const c10::StreamId id;

 private:
  friend class Marker;
  void work();
  bool may_run() const;
  // In a captured stream nothing passes.
  void refuse_wait() const;

  const Schedule schedule_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  uint64_t pushed_ = 0;
  uint64_t done_ = 0;
  uint64_t demanded_ = 0;
  bool started_ = false, running_ = false, stopped_ = false, is_kept_ = false;
  std::vector<Task>* kept_ = nullptr;
  std::vector<std::pair<void*, size_t>> memory_;
  std::string failure_;
};

// A place in a queue that others may wait for: what an event is, once it was recorded.
class Marker {
 public:
  static std::shared_ptr<Marker> in(Queue& queue);

  bool has_passed() { return queue_.has_passed(place_); }
  // Waits in the calling thread; throws what failed before it.
  void synchronize();
  // Has `later` wait, and fail as this queue did.
  static void block(std::shared_ptr<Marker> marker, Queue& later);

 private:
  explicit Marker(Queue& queue) : queue_(queue) {}

  Queue& queue_;
  uint64_t place_ = 0;
  std::string failure_;  // written when the marker is passed
};

}  // namespace troupe::sim
