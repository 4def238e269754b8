#include "io/scratch_file.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/memory/reserve_file.h"

namespace troupe {
namespace {

constexpr int kOwnerOnly = 0600;
constexpr size_t kPieceBytes = size_t{1} << 20;

// Letters at the end of a name that mkostemp puts its own in place of.
constexpr size_t kNumDrawnLetters = 6;

// Where the file system knows no nameless files, one with a name for a moment.
int open_and_unlink(const std::string& directory) {
  std::string path = directory + "/.scratch-" + std::string(kNumDrawnLetters, 'X');
  const int descriptor = mkostemp(path.data(), O_CLOEXEC);
  if (descriptor >= 0) unlink(path.c_str());
  return descriptor;
}

bool set_direct(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  return flags >= 0 && fcntl(descriptor, F_SETFL, flags | O_DIRECT) == 0;
}

}  // namespace

ScratchFile::ScratchFile(const std::string& directory, int64_t size_bytes)
    : directory_(directory), size_bytes_(size_bytes) {
  open_nameless();
  try {
    reserve();
  } catch (...) {
    close(descriptor_);
    throw;
  }
  direct_ = set_direct(descriptor_);
}

ScratchFile::~ScratchFile() { close(descriptor_); }

void ScratchFile::open_nameless() {
  descriptor_ = open(directory_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kOwnerOnly);
  if (descriptor_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) descriptor_ = open_and_unlink(directory_);
  if (descriptor_ < 0) fail("make", errno);
}

void ScratchFile::reserve() const {
  // Asked first: a reservation that does not fit would fill the disk for everyone before it failed.
  struct statvfs space {};
  if (fstatvfs(descriptor_, &space) != 0) fail("reserve", errno);
  const auto page_bytes = static_cast<int64_t>(space.f_frsize);
  if (size_bytes_ / page_bytes >= static_cast<int64_t>(space.f_bavail)) fail("reserve", ENOSPC);
  if (const int error = reserve_file(descriptor_, 0, size_bytes_); error != 0) fail("reserve", error);
}

Transfer ScratchFile::transfer(std::shared_ptr<const ScratchFile> file, bool write, char* memory, size_t size_bytes,
                               int64_t offset_bytes, std::function<void(std::exception_ptr)> done) {
  const auto move = [file = std::move(file), write, memory, size_bytes, offset_bytes](size_t piece) {
    const size_t begin = piece * kPieceBytes;
    const size_t bytes = std::min(kPieceBytes, size_bytes - begin);
    const int64_t offset = offset_bytes + static_cast<int64_t>(begin);
    if (write) {
      file->write(memory + begin, bytes, offset);
    } else {
      file->read(memory + begin, bytes, offset);
    }
  };
  return {std::max<size_t>(1, (size_bytes + kPieceBytes - 1) / kPieceBytes), move, std::move(done)};
}

void ScratchFile::read(void* into, size_t size_bytes, int64_t offset_bytes) const {
  for (auto* at = static_cast<char*>(into); size_bytes > 0;) {
    const ssize_t moved = pread(descriptor_, at, size_bytes, offset_bytes);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) fail("read", moved == 0 ? EIO : errno);  // the file has its full size: an early end is a fault
    at += moved, offset_bytes += moved, size_bytes -= static_cast<size_t>(moved);
  }
}

void ScratchFile::write(const void* from, size_t size_bytes, int64_t offset_bytes) const {
  for (auto* at = static_cast<const char*>(from); size_bytes > 0;) {
    const ssize_t moved = pwrite(descriptor_, at, size_bytes, offset_bytes);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) fail("write", moved == 0 ? EIO : errno);
    at += moved, offset_bytes += moved, size_bytes -= static_cast<size_t>(moved);
  }
}

void ScratchFile::fail(const char* action, int error) const {
  const std::string reason = std::strerror(error);
  throw CodedError("SCRATCH_FILE",
                   std::string("[scratch] expected to ") + action + " a file of " + std::to_string(size_bytes_) + " bytes in " +
                       directory_ + ", got \"" + reason + "\" (give a folder of a sound disk with that much room)",
                   {{"action", action}, {"directory", directory_}, {"reason", reason}, {"sizeBytes", std::to_string(size_bytes_)}});
}

}  // namespace troupe
