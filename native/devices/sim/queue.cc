#include "devices/sim/queue.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/memory/allocator.h"
#include "core/dispatch/describe.h"
#include "core/error.h"
#include "core/torch_version.h"

#if TROUPE_TORCH_AT_LEAST(2, 9)

namespace troupe::sim {

Queue::Queue(c10::DeviceIndex device, c10::StreamId id) : device(device), id(id), schedule_(device, id) {}

c10::Stream Queue::stream() const {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::DeviceType::PrivateUse1, device), id);
}

uint64_t Queue::push(std::string name, std::function<void()> run) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_kept_) {
    if (kept_ != nullptr) kept_->push_back({std::move(name), std::move(run)});
    return done_ = ++pushed_;
  }
  if (!started_) {
    started_ = true;
    std::thread([this] { work(); }).detach();
  }
  tasks_.push_back({std::move(name), std::move(run)});
  changed_.notify_all();
  return ++pushed_;
}

void Queue::push_free(std::function<void()> run) {
  const uint64_t place = push("free", std::move(run));
  if (!is_kept_ && schedule_.frees_soon(place)) has_passed(place);
}

void Queue::keep_in(std::vector<Task>* tasks) {
  is_kept_ = true;
  kept_ = tasks;
}

void Queue::refuse_wait() const {
  if (kept_ == nullptr) return;
  throw CodedError("TENSOR_OP_FAILED", "[graph] expected work that waits for no stream, got a wait (a captured block computes on its device alone)");
}

bool Queue::has_passed(uint64_t place) {
  refuse_wait();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (done_ >= place) return true;
  demanded_ = std::max(demanded_, place);
  changed_.notify_all();
  return false;
}

void Queue::wait(uint64_t place) {
  refuse_wait();
  std::unique_lock<std::mutex> lock(mutex_);
  demanded_ = std::max(demanded_, place);
  changed_.notify_all();
  changed_.wait(lock, [&] { return done_ >= place || stopped_; });
}

uint64_t Queue::last_place() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return pushed_;
}

void Queue::synchronize() {
  wait(last_place());
  raise();
}

void Queue::raise() {
  std::string failure;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    failure.swap(failure_);
  }
  if (!failure.empty()) throw CodedError("TENSOR_OP_FAILED", failure);
}

std::string Queue::failure() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return failure_;
}

void Queue::fail(const std::string& failure) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failure_.empty()) failure_ = failure;
}

void Queue::stop() {
  std::unique_lock<std::mutex> lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !running_; });
}

bool Queue::may_run() const {
  if (tasks_.empty()) return false;
  return done_ < demanded_ || schedule_.is_eager(done_) || tasks_.size() > schedule_.max_lag(done_);
}

void Queue::work() {
  // Scratch memory of kernels is not memory of the device: it has a tag of its own in the ledger.
  set_allocation_tag(allocation_tag("sim kernels"));
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopped_ || may_run(); });
    if (stopped_) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    const int pause_us = done_ < demanded_ ? 0 : schedule_.pause_us(done_);
    running_ = true;
    lock.unlock();
    if (pause_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
    std::string failure;
    try {
      task.run();
    } catch (const std::exception& error) {
      failure = "[" + task.name + "] " + plain_message(error) + " (found late, in stream " + std::to_string(id) + " of sim:" +
                std::to_string(device) + ")";
    }
    // Frees what the task held before its completion is visible.
    task = Task{};
    lock.lock();
    if (failure_.empty()) failure_ = std::move(failure);
    running_ = false;
    done_++;
    changed_.notify_all();
  }
}

std::shared_ptr<Marker> Marker::in(Queue& queue) {
  const std::shared_ptr<Marker> marker(new Marker(queue));
  marker->place_ = queue.push("event", [marker, &queue] { marker->failure_ = queue.failure(); });
  return marker;
}

void Marker::synchronize() {
  queue_.wait(place_);
  if (failure_.empty()) return;
  queue_.raise();  // reported here, it is not reported again there
  throw CodedError("TENSOR_OP_FAILED", failure_);
}

void Marker::block(std::shared_ptr<Marker> marker, Queue& later) {
  if (&marker->queue_ == &later) return;
  marker->queue_.refuse_wait();
  later.refuse_wait();
  later.push("wait", [marker = std::move(marker), &later] {
    marker->queue_.wait(marker->place_);
    if (!marker->failure_.empty()) later.fail(marker->failure_);
  });
}

}  // namespace troupe::sim

#endif
