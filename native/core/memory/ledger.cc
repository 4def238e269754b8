#include "core/memory/ledger.h"

#include <c10/util/Exception.h>

namespace troupe {

LedgerEntry& Ledger::entry(int32_t tag) {
  std::lock_guard<std::mutex> lock(mutex_);
  TORCH_CHECK(tag >= 0 && static_cast<size_t>(tag) < entries_.size(), "[allocator] expected a tag that allocation_tag returned, ",
              "0 to ", entries_.size() - 1, ", got ", tag);
  return entries_[static_cast<size_t>(tag)];
}

// Asked once per name and thread, so a walk is good enough.
int32_t Ledger::tag_of(const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  int32_t tag = 0;
  for (const LedgerEntry& entry : entries_) {
    if (entry.tag == name) return tag;
    tag++;
  }
  entries_.emplace_back(name);
  return tag;
}

MemoryReport Ledger::report() {
  std::lock_guard<std::mutex> lock(mutex_);
  MemoryReport report;
  report.total = total_.use();
  for (const LedgerEntry& entry : entries_) report.by_tag.push_back(entry.use());
  return report;
}

void Ledger::reset_peaks() {
  std::lock_guard<std::mutex> lock(mutex_);
  total_.reset_peak();
  for (LedgerEntry& entry : entries_) entry.reset_peak();
}

}  // namespace troupe
