#include "core/memory/kept_mappings.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace troupe {
namespace {

struct Pool {
  std::mutex mutex;
  std::multimap<size_t, Mapping> kept;
  size_t kept_bytes = 0;
  size_t used_bytes = 0;
  size_t peak_bytes = 0;

  void use(size_t length) {
    used_bytes += length;
    peak_bytes = std::max(peak_bytes, used_bytes);
  }
};

Pool& pool() {
  static Pool* const instance = new Pool;
  return *instance;
}

void drop(const Mapping& mapping) {
  munmap(mapping.base, mapping.length);
  unlink(mapping.path.c_str());
}

}  // namespace

void begin_use(const Mapping& mapping) {
  const std::lock_guard<std::mutex> lock(pool().mutex);
  pool().use(mapping.length);
}

std::optional<Mapping> reuse_mapping(size_t length) {
  Pool& mappings = pool();
  const std::lock_guard<std::mutex> lock(mappings.mutex);
  const auto found = mappings.kept.find(length);
  if (found == mappings.kept.end()) return std::nullopt;
  Mapping mapping = std::move(found->second);
  mappings.kept.erase(found);
  mappings.kept_bytes -= length;
  mappings.use(length);
  return mapping;
}

void end_use(Mapping mapping, bool reusable) {
  Pool& mappings = pool();
  const std::lock_guard<std::mutex> lock(mappings.mutex);
  mappings.used_bytes -= mapping.length;
  const bool fits = mappings.used_bytes + mappings.kept_bytes + mapping.length <= mappings.peak_bytes;
  if (!reusable || !fits) return drop(mapping);
  mappings.kept_bytes += mapping.length;
  mappings.kept.emplace(mapping.length, std::move(mapping));
}

void release_kept_mappings() {
  Pool& mappings = pool();
  const std::lock_guard<std::mutex> lock(mappings.mutex);
  for (const auto& [length, mapping] : mappings.kept) drop(mapping);
  mappings.kept.clear();
  mappings.kept_bytes = 0;
  mappings.peak_bytes = mappings.used_bytes;
}

}  // namespace troupe
