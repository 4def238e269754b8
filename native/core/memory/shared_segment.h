// Memory that processes of one host share: a file in their shared folder, mapped by each of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/memory/kept_mappings.h"

namespace troupe {

// One mapping of one segment. Holds a name of the file that is this process's own, `p<index>-<n>`, and removes it at its end:
// the memory goes with the last process that has a name or a mapping. What no other process has is kept for the next segment
// of its size.
class Segment : public std::enable_shared_from_this<Segment> {
 public:
  // Loans of one segment at a time.
  static constexpr int32_t kNumSlots = 1000;
  static constexpr int32_t kNoSlot = -1;

  // New memory. Throws CodedError SHARED_MEMORY_FULL where the system has none left: reserved now, so that no later
  // write fails. `tag`: what a ledger counts it as; `charged`: whether this process's does from now on.
  static std::shared_ptr<Segment> create(int64_t bytes, const std::string& tag, bool charged);

  // Takes the file `name` of the folder over under a name of this process's own. Where a loan goes with it, `slot` is claimed
  // first. Throws CodedError TENSOR_REF_GONE when another process has done so before, or it was released.
  static std::shared_ptr<Segment> take_over(const std::string& name, int32_t slot);

  // The segment that a tensor's memory lies in; null for other memory.
  static std::shared_ptr<Segment> of(const at::Tensor& tensor);

  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // A tensor over this memory, which it keeps.
  at::Tensor tensor(at::ScalarType dtype, at::IntArrayRef sizes, at::IntArrayRef strides, int64_t offset);

  // Gives the memory behind the tensors back to the system, in every process, until `occupy`. Only for their owner; calling
  // either twice has no effect. `occupy` throws CodedError SHARED_MEMORY_FULL.
  void vacate();
  void occupy();

  // Gives the file one name more, for a receiver to take over.
  void add_name(const std::string& name) const;

  // A word of the segment that says who reads it: the number of a process, or one of the states below.
  int32_t claim_slot();  // kNoSlot when all are in use
  std::atomic<uint32_t>& slot(int32_t index) const;

  static constexpr uint32_t kFree = 0;
  static constexpr uint32_t kReturned = 0xfffffffe;
  static constexpr uint32_t kUnderWay = 0xffffffff;

 private:
  struct Header;
  explicit Segment(Mapping mapping) : mapping_(std::move(mapping)) {}
  static std::shared_ptr<Segment> make(int64_t bytes);
  static std::shared_ptr<Segment> map(int descriptor, std::string path);
  Header& header() const;
  void charge_if_nobody_does();
  // Gives the memory back to the system, the header's pages aside.
  void release_pages();

  Mapping mapping_;  // its path is absolute: a tensor may outlive this process's stay in the folder
  void* charge_ = nullptr;
  bool vacant_ = false;
};

}  // namespace troupe
