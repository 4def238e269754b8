// Threads that wait for the disk, so that those that compute do not.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "io/scratch_file.h"

namespace troupe {

// One tensor's way to or from a file. `done` is called once, from one of the threads, with null or what went wrong.
struct Transfer {
  std::shared_ptr<const ScratchFile> file;
  bool write;
  char* memory;
  size_t size_bytes;
  int64_t offset_bytes;
  std::function<void(std::exception_ptr)> done;
};

class TransferThreads {
 public:
  // A transfer is cut into pieces of this size, so that a single one keeps the whole queue of a disk busy.
  static constexpr size_t kPieceBytes = size_t{1} << 20;

  explicit TransferThreads(int count);
  // Waits for the pieces under way and drops the rest: `done` of an unfinished transfer is never called.
  ~TransferThreads();
  TransferThreads(const TransferThreads&) = delete;
  TransferThreads& operator=(const TransferThreads&) = delete;

  // Begins a transfer and returns. Memory and file must live until `done`, or until this is destroyed.
  void submit(Transfer transfer);

 private:
  struct Pieces;

  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Pieces>> queue_;  // each with pieces nobody has taken yet
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace troupe
