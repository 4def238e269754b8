// One collective among threads: what each brought, and the copying and adding that makes the result, cut into chunks that
// any thread can carry out. Who carries them out changes no bit.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "comm/operation.h"
#include "core/device/fence.h"

namespace troupe::comm {

class LocalCollective {
 public:
  // `ranks`: who takes part, in the order in which they are added up.
  LocalCollective(int64_t sequence, const std::vector<int>& ranks);

  // Under the group's lock, until all have come:
  const int64_t sequence;
  const std::vector<int> ranks;
  std::vector<Operation> parts;      // by participant
  std::vector<Signature> signatures; // kind -1: has not come
  std::vector<Fence> arrivals;       // by participant: behind what it has given its stream before
  size_t num_arrived = 0;
  bool complete() const { return num_arrived == ranks.size(); }
  // The participants that have not come, as ranks.
  std::vector<int> missing() const;

  // Once all have come, before anything is carried out. Reads `parts`.
  void plan();
  // Whether the work is so small that the last thread to post does all of it.
  bool is_small() const { return work_bytes_ <= kSmallBytes; }
  // Carries out chunks until none is left to claim; true for the one thread that has finished the last of them.
  bool help();
  bool has_unclaimed() const { return runnable.load(std::memory_order_acquire) && next_chunk_.load() < num_chunks_; }
  // Lets go of the tensors. Only when finished, or when nobody will help any more.
  void release();

  std::atomic<bool> runnable{false};  // planned, and everything issued before is finished
  std::atomic<bool> finished{false};
  // Makes the calling thread's stream wait for the result. Only once finished.
  void hold_back() const {
    for (const Fence& result : results_) result.hold_back();
  }

 private:
  static constexpr int64_t kSmallBytes = 256 << 10;
  static constexpr int64_t kChunkBytes = 128 << 10;

  // destinations = reduction of sources; of one source: a copy.
  struct Move {
    std::vector<const void*> sources;
    std::vector<void*> destinations;
    int64_t numel;
    int64_t first_chunk;
  };

  void add_move(std::vector<const void*> sources, std::vector<void*> destinations, int64_t numel);
  void plan_reduction();
  void plan_gather();
  void plan_all_to_all();
  void carry_out(int64_t chunk);
  bool is_on_device() const { return !device_.is_cpu(); }
  void carry_out_on_device();

  std::vector<Move> moves_;
  c10::Device device_{c10::DeviceType::CPU};
  at::ScalarType dtype_ = at::kByte;
  std::vector<Fence> results_;  // by participant, each on its device
  Reduction reduction_ = Reduction::sum;
  int64_t item_bytes_ = 1;
  int64_t chunk_numel_ = kChunkBytes;
  int64_t work_bytes_ = 0;
  int64_t num_chunks_ = 0;
  std::atomic<int64_t> next_chunk_{0};
  std::atomic<int64_t> finished_chunks_{0};
};

}  // namespace troupe::comm
