// The process-wide CPU allocator of libtorch: freed blocks are kept and reused, memory is backed by huge pages, and every
// byte is accounted to the tag of the thread that asked for it.
#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

// Puts the caching allocator in libtorch's place for CPU memory. Idempotent; to be called before the first tensor exists
// (blocks of the former allocator go back to it in any case). Never taken back: the library must stay loaded.
// Once installed, an allocation that cannot be served throws c10::OutOfMemoryError (c10::Error before torch 2.0) that names
// the bytes asked for, in use and held.
void install_allocator();

// One entry of the ledger. Bytes are those libtorch asked for: no rounding, no headers.
struct MemoryUse {
  std::string tag;          // "" for allocations of threads that never set a tag
  int64_t live_bytes = 0;   // asked for and not yet freed
  int64_t peak_bytes = 0;   // highest live_bytes since the start or the last reset_peak_memory()
};

struct MemoryReport {
  MemoryUse total;
  std::vector<MemoryUse> by_tag;  // in the order the tags were first named
  int64_t resident_bytes = 0;     // pages the allocator holds from the system, live or cached
};

// The ledger now. Consistent for one thread; while others allocate, entries may be a moment apart.
MemoryReport memory_report();

// Starts every peak again at the present live bytes.
void reset_peak_memory();

// The tag that allocations of the calling thread are charged to.
std::string present_tag();

// The tag that the memory of a storage is charged to; "" for memory that is not the allocator's.
std::string tag_of(const c10::DataPtr& data);

// The number of the tag `name`, the same for every thread; made on first use, kept for ever.
int32_t allocation_tag(const std::string& name);

// From now on allocations of the calling thread are charged to `tag` (0: untagged); returns the tag before. A block is
// credited to the tag it was charged to, whichever thread frees it. Throws c10::Error on a number never given out.
int32_t set_allocation_tag(int32_t tag);

// Enters memory that is not the allocator's own into the ledger; returns what `credit_memory` is given when it goes, and
// `charge_again` when it is back.
void* charge_memory(int64_t bytes, const std::string& tag);
void charge_again(void* charge, int64_t bytes);
void credit_memory(void* charge, int64_t bytes);

// Gives all cached free memory back to the system, except a few hundred KiB of small blocks in the caches of other threads,
// and also the freed memory that malloc keeps.
void release_cached_memory();

}  // namespace troupe
