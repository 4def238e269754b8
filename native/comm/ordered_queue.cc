#include "comm/ordered_queue.h"

namespace troupe::comm {

OrderedQueue::~OrderedQueue() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<OrderedQueue::Task> OrderedQueue::put(std::function<void()> run, bool waited_for_at_once) {
  auto task = std::make_shared<Task>();
  task->run = std::move(run);
  const std::lock_guard<std::mutex> lock(mutex_);
  tasks_.push_back(task);
  if (waited_for_at_once) return task;
  if (!thread_.joinable()) thread_ = std::thread([this] { run_until_stopped(); });
  changed_.notify_all();
  return task;
}

void OrderedQueue::wait(const Task& task) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!task.finished) {
    if (running_) {
      changed_.wait(lock);
    } else {
      run_first(lock);
    }
  }
}

bool OrderedQueue::is_finished(const Task& task) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return task.finished;
}

void OrderedQueue::when_finished(Task& task, std::function<void()> then) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!task.finished) {
    task.then = std::move(then);
    return;
  }
  lock.unlock();
  then();
}

void OrderedQueue::run_first(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<Task> task = tasks_.front();
  running_ = true;
  lock.unlock();
  task->run();
  task->run = nullptr;  // what it held goes before anybody learns that it is finished
  lock.lock();
  running_ = false;
  task->finished = true;
  tasks_.pop_front();
  changed_.notify_all();
  if (!task->then) return;
  lock.unlock();
  task->then();
  lock.lock();
}

void OrderedQueue::run_until_stopped() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    if (tasks_.empty() || running_) {
      changed_.wait(lock);
    } else {
      run_first(lock);
    }
  }
}

}  // namespace troupe::comm
