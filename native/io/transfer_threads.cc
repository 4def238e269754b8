#include "io/transfer_threads.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace troupe {

struct TransferThreads::Pieces {
  explicit Pieces(Transfer given)
      : transfer(std::move(given)), count(std::max<size_t>(1, (transfer.size_bytes + kPieceBytes - 1) / kPieceBytes)) {}

  void move(size_t piece) const {
    const size_t begin = piece * kPieceBytes;
    const size_t bytes = std::min(kPieceBytes, transfer.size_bytes - begin);
    const int64_t offset = transfer.offset_bytes + static_cast<int64_t>(begin);
    if (transfer.write) {
      transfer.file->write(transfer.memory + begin, bytes, offset);
    } else {
      transfer.file->read(transfer.memory + begin, bytes, offset);
    }
  }

  const Transfer transfer;
  const size_t count;
  // Guarded by the mutex of the threads.
  size_t taken = 0;
  size_t finished = 0;
  std::exception_ptr error;
};

TransferThreads::TransferThreads(int count) {
  for (int i = 0; i < count; ++i) threads_.emplace_back([this] { run(); });
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
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::make_shared<Pieces>(std::move(transfer)));
  }
  wake_.notify_all();
}

void TransferThreads::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (ending_) return;
    const std::shared_ptr<Pieces> pieces = queue_.front();
    const size_t piece = pieces->taken++;
    if (pieces->taken == pieces->count) queue_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      pieces->move(piece);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !pieces->error) pieces->error = error;
    if (++pieces->finished < pieces->count) continue;
    lock.unlock();
    pieces->transfer.done(pieces->error);
    lock.lock();
  }
}

}  // namespace troupe
