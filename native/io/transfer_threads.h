// Threads that wait for the disk, so that those that compute do not.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe {

// Work for the disk, cut into pieces that may be done at once and in any order. `done` is called once, from one of the
// threads, with null or what the first piece that failed threw; the pieces after it are done nevertheless.
struct Transfer {
  size_t num_pieces;
  std::function<void(size_t piece)> move;
  std::function<void(std::exception_ptr)> done;
};

class TransferThreads {
 public:
  // `give_way`: by how much they yield to the thread that makes them, in steps of nice(2); only Linux knows that of threads.
  explicit TransferThreads(int count, int give_way = 0);
  // Waits for the pieces under way and drops the rest: `done` of an unfinished transfer is never called.
  ~TransferThreads();
  TransferThreads(const TransferThreads&) = delete;
  TransferThreads& operator=(const TransferThreads&) = delete;

  // Begins a transfer of at least one piece and returns. What it uses must live until `done`, or until this is destroyed.
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
