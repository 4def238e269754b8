#include "core/memory/address_space.h"

#include <sys/mman.h>

#include <cstdint>

namespace troupe {
namespace {

char* align_up(char* address, size_t alignment) {
  return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(address) + alignment - 1) & ~(uintptr_t{alignment} - 1));
}

}  // namespace

AddressSpace::AddressSpace(size_t reserve_bytes) {
  // One page more, so that the first one can be aligned. Never unmapped: tensors may outlive every destructor.
  for (size_t bytes = reserve_bytes; bytes >= 8 * kPageBytes; bytes /= 2) {
    void* mapped = mmap(nullptr, bytes + kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) continue;
    base_ = align_up(static_cast<char*>(mapped), kPageBytes);
    reserved_bytes_ = bytes / kPageBytes * kPageBytes;
    return;
  }
}

bool AddressSpace::grow(size_t bytes) {
  bytes = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  if (bytes > reserved_bytes_ - committed_bytes_) return false;
  // Private and writable memory is what the system counts, so a request it can never serve is refused here.
  if (mprotect(end(), bytes, PROT_READ | PROT_WRITE) != 0) return false;
#ifdef MADV_HUGEPAGE
  madvise(end(), bytes, MADV_HUGEPAGE);  // only advice: without huge pages everything works, slower
#endif
  committed_bytes_ += bytes;
  touched_.resize(committed_bytes_ / kPageBytes);
  return true;
}

size_t AddressSpace::touch(const char* first, const char* last) {
  size_t fresh_bytes = 0;
  for (size_t page = page_of(first), stop = page_of(last - 1) + 1; page < stop; page++) {
    if (!touched_[page]) fresh_bytes += kPageBytes;
    touched_[page] = true;
  }
  resident_bytes_ += fresh_bytes;
  return fresh_bytes;
}

size_t AddressSpace::purge(char* first, char* last) {
  size_t purged_bytes = 0;
  for (char* page = align_up(first, kPageBytes); page + kPageBytes <= last; page += kPageBytes) {
    if (!touched_[page_of(page)]) continue;
    if (madvise(page, kPageBytes, MADV_DONTNEED) != 0) continue;
    touched_[page_of(page)] = false;
    purged_bytes += kPageBytes;
  }
  resident_bytes_ -= purged_bytes;
  return purged_bytes;
}

}  // namespace troupe
