// A nameless file of fixed size, for state that is larger than memory. It has no place in any directory: it is gone with
// its last descriptor, whatever ends the process, and nothing can mistake it for anything else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "io/transfer_threads.h"

namespace troupe {

class ScratchFile {
 public:
  // Memory addresses, offsets and sizes of a transfer are multiples of this, so that the file is read and written past the
  // page cache where the file system allows it.
  static constexpr size_t kPageBytes = 4096;

  // Reserves `size_bytes` on the file system of `directory`, so that a full disk is known now and not at a write.
  // Throws CodedError SCRATCH_FILE.
  ScratchFile(const std::string& directory, int64_t size_bytes);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  // Both block until all bytes are through, and are safe from every thread. Throw CodedError SCRATCH_FILE.
  void read(void* into, size_t size_bytes, int64_t offset_bytes) const;
  void write(const void* from, size_t size_bytes, int64_t offset_bytes) const;

  // A transfer of `size_bytes` between memory and the file, cut so that a single one fills the queue of a disk.
  static Transfer transfer(std::shared_ptr<const ScratchFile> file, bool write, char* memory, size_t size_bytes,
                           int64_t offset_bytes, std::function<void(std::exception_ptr)> done);

  int64_t size_bytes() const { return size_bytes_; }
  // Whether transfers go past the page cache.
  bool direct() const { return direct_; }

 private:
  void open_nameless();
  void reserve() const;
  [[noreturn]] void fail(const char* action, int error) const;

  const std::string directory_;
  const int64_t size_bytes_;
  int descriptor_ = -1;
  bool direct_ = false;
};

}  // namespace troupe
