#include "core/memory/map_file.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace troupe {
namespace {

[[noreturn]] void unreadable(const std::string& path) {
  const std::string reason = std::strerror(errno);
  throw CodedError("FILE_UNREADABLE", "[mapFile] expected a readable file, got \"" + reason + "\" for " + path,
                   {{"path", path}, {"reason", reason}});
}

// Closes the descriptor on every way out; the mapping outlives it.
class File {
 public:
  explicit File(const std::string& path) : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) unreadable(path);
  }
  ~File() { close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

void check_range(const std::string& path, int64_t size_bytes, int64_t offset_bytes, int64_t numel, int64_t item_bytes) {
  const bool fits = offset_bytes >= 0 && numel >= 0 && offset_bytes <= size_bytes &&
                    numel <= (size_bytes - offset_bytes) / item_bytes;
  if (fits) return;
  throw CodedError("FILE_TOO_SHORT",
                   "[mapFile] expected " + std::to_string(numel) + " elements of " + std::to_string(item_bytes) +
                       " bytes from byte " + std::to_string(offset_bytes) + " on in " + path + ", got a file of " +
                       std::to_string(size_bytes) + " bytes",
                   {{"path", path}, {"sizeBytes", std::to_string(size_bytes)}});
}

}  // namespace

at::Tensor map_file(const std::string& path, at::ScalarType dtype, int64_t numel, int64_t offset_bytes) {
  const File file(path);
  struct stat status {};
  if (fstat(file.descriptor(), &status) != 0) unreadable(path);
  const auto item_bytes = static_cast<int64_t>(c10::elementSize(dtype));
  check_range(path, status.st_size, offset_bytes, numel, item_bytes);
  const auto options = at::TensorOptions().dtype(dtype);
  if (numel == 0) return at::empty({0}, options);  // an empty mapping is an error to mmap
  const auto length = static_cast<size_t>(offset_bytes + numel * item_bytes);
  void* base = mmap(nullptr, length, PROT_READ, MAP_SHARED, file.descriptor(), 0);
  if (base == MAP_FAILED) unreadable(path);
  return at::from_blob(static_cast<char*>(base) + offset_bytes, {numel}, [base, length](void*) { munmap(base, length); },
                       options);
}

}  // namespace troupe
