// Tasks that run one after the other, in the order in which they were put, on whatever thread has time: one that waits for a
// task runs those before it and the task itself; what nobody waits for, a thread of the queue's own runs.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace troupe::comm {

class OrderedQueue {
 public:
  struct Task {
    std::function<void()> run;  // must not throw
    bool finished = false;
    std::function<void()> then;  // must not throw
  };

  OrderedQueue() = default;
  ~OrderedQueue();
  OrderedQueue(const OrderedQueue&) = delete;
  OrderedQueue& operator=(const OrderedQueue&) = delete;

  // `waited_for_at_once`: the caller goes on to wait(), no other thread needs to wake for it.
  std::shared_ptr<Task> put(std::function<void()> run, bool waited_for_at_once);
  void wait(const Task& task);
  bool is_finished(const Task& task);
  // Calls `then` once the task is finished, at once or from the thread that runs it.
  void when_finished(Task& task, std::function<void()> then);

 private:
  void run_first(std::unique_lock<std::mutex>& lock);
  void run_until_stopped();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Task>> tasks_;  // the first may be running
  bool running_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace troupe::comm
