// A stretch of address space that is taken from the system once and given memory, in huge pages, as it grows.
#pragma once

#include <cstddef>
#include <vector>

namespace troupe {

// Not thread-safe: its owner locks.
class AddressSpace {
 public:
  static constexpr size_t kPageBytes = size_t{2} << 20;  // a huge page of x86-64 and of aarch64 with 4 KiB base pages

  // Reserves addresses, no memory. Where the process may not have that many (ulimit -v), as many as it may.
  explicit AddressSpace(size_t reserve_bytes);
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  char* end() const { return base_ + committed_bytes_; }

  // Makes `bytes` (rounded up to pages) after end() usable; false when the system refuses.
  bool grow(size_t bytes);

  // Says that [first, last) is going to be written; returns the bytes of pages that gain memory by it.
  size_t touch(const char* first, const char* last);

  // Gives the memory of the pages wholly inside [first, last) back to the system; their content is lost.
  // Returns the bytes given back.
  size_t purge(char* first, char* last);

  // Memory of the pages touched and not purged.
  size_t resident_bytes() const { return resident_bytes_; }

 private:
  size_t page_of(const char* address) const { return static_cast<size_t>(address - base_) / kPageBytes; }

  char* base_ = nullptr;
  size_t reserved_bytes_ = 0;
  size_t committed_bytes_ = 0;
  size_t resident_bytes_ = 0;
  std::vector<bool> touched_;  // by page
};

}  // namespace troupe
