// Counts of allocated bytes: exact, in total and per tag, kept with two atomic additions per allocation.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

#include "core/memory/allocator.h"

namespace troupe {

// Live and peak bytes of one tag, or of all. On a cache line of its own: threads with different tags do not contend for it.
struct alignas(64) LedgerEntry {
  explicit LedgerEntry(std::string tag) : tag(std::move(tag)) {}

  void charge(int64_t bytes) {
    const int64_t live = live_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    int64_t peak = peak_bytes.load(std::memory_order_relaxed);
    while (live > peak && !peak_bytes.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
    }
  }
  void credit(int64_t bytes) { live_bytes.fetch_sub(bytes, std::memory_order_relaxed); }
  void reset_peak() { peak_bytes.store(live_bytes.load(std::memory_order_relaxed), std::memory_order_relaxed); }
  MemoryUse use() const {
    return {tag, live_bytes.load(std::memory_order_relaxed), peak_bytes.load(std::memory_order_relaxed)};
  }

  const std::string tag;
  std::atomic<int64_t> live_bytes{0};
  std::atomic<int64_t> peak_bytes{0};
};

// Thread-safe.
class Ledger {
 public:
  Ledger() : total_("") { entries_.emplace_back(""); }

  LedgerEntry& total() { return total_; }
  // Entry 0 is the untagged one. Entries stay where they are for ever.
  LedgerEntry& entry(int32_t tag);
  int32_t tag_of(const std::string& name);
  MemoryReport report();
  void reset_peaks();

 private:
  std::mutex mutex_;
  std::deque<LedgerEntry> entries_;
  LedgerEntry total_;
};

}  // namespace troupe
