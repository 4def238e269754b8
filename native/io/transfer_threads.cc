#include "io/transfer_threads.h"

#ifdef __linux__
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <utility>

namespace troupe {
namespace {

void yield_by(int steps) {
#ifdef __linux__
  if (steps == 0) return;
  const auto thread = static_cast<id_t>(syscall(SYS_gettid));
  setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + steps);
#endif
}

}  // namespace

struct TransferThreads::Pieces {
  explicit Pieces(Transfer given) : transfer(std::move(given)) {}

  const Transfer transfer;
  // Guarded by the mutex of the threads.
  size_t taken = 0;
  size_t finished = 0;
  std::exception_ptr error;
};

TransferThreads::TransferThreads(int count, int give_way) {
  for (int i = 0; i < count; ++i) {
    threads_.emplace_back([this, give_way] {
      yield_by(give_way);
      run();
    });
  }
}

TransferThreads::~TransferThreads() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void TransferThreads::submit(Transfer transfer) {
  const bool several = transfer.num_pieces > 1;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::make_shared<Pieces>(std::move(transfer)));
  }
  if (several) {
    wake_.notify_all();
  } else {
    wake_.notify_one();
  }
}

void TransferThreads::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (ending_) return;
    const std::shared_ptr<Pieces> pieces = queue_.front();
    const size_t piece = pieces->taken++;
    if (pieces->taken == pieces->transfer.num_pieces) queue_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      pieces->transfer.move(piece);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !pieces->error) pieces->error = error;
    if (++pieces->finished < pieces->transfer.num_pieces) continue;
    lock.unlock();
    pieces->transfer.done(pieces->error);
    lock.lock();
  }
}

}  // namespace troupe
