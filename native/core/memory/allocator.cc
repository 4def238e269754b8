#include "core/memory/allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <sys/sysinfo.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "core/memory/arena.h"
#include "core/memory/ledger.h"
#include "core/memory/small_blocks.h"

namespace troupe {
namespace {

// The memory of this machine, or the limit of this container (cgroup 2).
size_t physical_bytes() {
  struct sysinfo info;
  sysinfo(&info);
  const size_t machine_bytes = (info.totalram + info.totalswap) * static_cast<size_t>(info.mem_unit);
  size_t container_bytes = 0;
  const bool limited = static_cast<bool>(std::ifstream("/sys/fs/cgroup/memory.max") >> container_bytes);  // else "max"
  return limited ? std::min(machine_bytes, container_bytes) : machine_bytes;
}

// One per process and never destroyed: tensors in static storage are freed after every destructor has run.
struct Heap {
  const size_t limit_bytes = physical_bytes();
  // Small blocks live long and everywhere; apart from the large ones they do not keep those from merging.
  Arena small{limit_bytes};
  Arena large{limit_bytes};
  Ledger ledger;

  static Heap& get() {
    static Heap* const heap = new Heap;
    return *heap;
  }
  size_t resident_bytes() { return small.resident_bytes() + large.resident_bytes(); }
};

thread_local LedgerEntry* thread_entry = nullptr;  // null: untagged
thread_local int32_t thread_tag = 0;

[[noreturn]] void throw_out_of_memory(Heap& heap, size_t asked_bytes) {
  TORCH_CHECK_WITH(OutOfMemoryError, false, "[allocator] expected memory for ", asked_bytes, " bytes, got ",
                   heap.ledger.total().use().live_bytes, " bytes in use, ", heap.resident_bytes(), " held, ",
                   heap.limit_bytes, " available (use a smaller batch, more ranks or recomputation)");
}

void* take(size_t bytes) {
  Heap& heap = Heap::get();
  Block* block = bytes <= kMaxSmallBytes ? take_small(heap.small, bytes) : heap.large.take(bytes);
  if (!block) throw_out_of_memory(heap, bytes);
  if (bytes > kMaxSmallBytes) block->size_class = -1;
  if (!thread_entry) thread_entry = &heap.ledger.entry(0);
  block->entry = thread_entry;
  block->asked_bytes = bytes;
  block->entry->charge(static_cast<int64_t>(bytes));
  heap.ledger.total().charge(static_cast<int64_t>(bytes));
  return block->data();
}

void give(void* data) {
  if (!data) return;
  Heap& heap = Heap::get();
  Block* block = Block::of(data);
  block->entry->credit(static_cast<int64_t>(block->asked_bytes));
  heap.ledger.total().credit(static_cast<int64_t>(block->asked_bytes));
  if (block->size_class < 0) {
    heap.large.give(block);
  } else {
    give_small(heap.small, block);
  }
}

class CachingAllocator final : public c10::Allocator {
 public:
  // The interface changed: `allocate` was const before, `copy_data` was not there. Of each, what fits overrides.
  c10::DataPtr allocate(size_t bytes) { return allocate_block(bytes); }
  c10::DataPtr allocate(size_t bytes) const { return allocate_block(bytes); }
  void copy_data(void* to, const void* from, size_t bytes) const { std::memcpy(to, from, bytes); }
  c10::DeleterFnPtr raw_deleter() const { return &give; }

 private:
  static c10::DataPtr allocate_block(size_t bytes) {
    void* data = bytes == 0 ? nullptr : take(bytes);
    return {data, data, &give, c10::Device(c10::DeviceType::CPU)};
  }
};

}  // namespace

void install_allocator() {
  static CachingAllocator* const allocator = new CachingAllocator;
  constexpr uint8_t kAbovePlainOnes = 1;
  c10::SetCPUAllocator(allocator, kAbovePlainOnes);
#ifdef __GLIBC__
  // glibc makes up to eight arenas a core, and each keeps some 4 MB that ended threads have left scattered in it: a program that
  // starts threads for run after run would grow until it has them all.
  if (getenv("MALLOC_ARENA_MAX") == nullptr) mallopt(M_ARENA_MAX, std::max(2, static_cast<int>(std::thread::hardware_concurrency())));
#endif
}

MemoryReport memory_report() {
  Heap& heap = Heap::get();
  MemoryReport report = heap.ledger.report();
  report.resident_bytes = static_cast<int64_t>(heap.resident_bytes());
  return report;
}

void reset_peak_memory() { Heap::get().ledger.reset_peaks(); }

int32_t allocation_tag(const std::string& name) { return Heap::get().ledger.tag_of(name); }

int32_t set_allocation_tag(int32_t tag) {
  LedgerEntry* entry = &Heap::get().ledger.entry(tag);
  const int32_t before = thread_tag;
  thread_entry = entry;
  thread_tag = tag;
  return before;
}

std::string present_tag() { return thread_entry ? thread_entry->tag : std::string(); }

std::string tag_of(const c10::DataPtr& data) {
  if (data.get_deleter() != &give || data.get() == nullptr) return {};
  return Block::of(data.get())->entry->tag;
}

void* charge_memory(int64_t bytes, const std::string& tag) {
  Heap& heap = Heap::get();
  LedgerEntry* entry = &heap.ledger.entry(heap.ledger.tag_of(tag));
  charge_again(entry, bytes);
  return entry;
}

void charge_again(void* charge, int64_t bytes) {
  static_cast<LedgerEntry*>(charge)->charge(bytes);
  Heap::get().ledger.total().charge(bytes);
}

void credit_memory(void* charge, int64_t bytes) {
  static_cast<LedgerEntry*>(charge)->credit(bytes);
  Heap::get().ledger.total().credit(bytes);
}

void release_cached_memory() {
  Heap& heap = Heap::get();
  flush_small(heap.small);
  heap.small.purge();
  heap.large.purge();
#ifdef __GLIBC__
  // Memory that ended threads have freed stays resident in their arenas until glibc is asked to give it back.
  malloc_trim(0);
#endif
}

}  // namespace troupe
