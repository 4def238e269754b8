#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "io/crc32c.h"
#include "io/summed_file.h"

namespace troupe {

SummedWriter::SummedWriter(const std::string& path, int64_t chunk_bytes) : path_(path), chunk_bytes_(chunk_bytes) {
  descriptor_ = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("make", errno);
}

SummedWriter::~SummedWriter() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::shared_ptr<SummedWriter::Append> SummedWriter::begin(const void* bytes, size_t size_bytes) {
  auto append = std::make_shared<Append>();
  append->file_ = this;
  append->bytes_ = static_cast<const char*>(bytes);
  append->begin_ = size_bytes_;
  append->end_ = size_bytes_ + static_cast<int64_t>(size_bytes);
  const int64_t first_chunk = append->begin_ / chunk_bytes_;
  const int64_t last_chunk = (append->end_ + chunk_bytes_ - 1) / chunk_bytes_;
  append->sums_.resize(size_bytes == 0 ? 0 : static_cast<size_t>(last_chunk - first_chunk));
  size_bytes_ = append->end_;
  return append;
}

void SummedWriter::Append::write(size_t piece) {
  const int64_t chunk_bytes = file_->chunk_bytes_;
  const int64_t chunk_begin = (begin_ / chunk_bytes + static_cast<int64_t>(piece)) * chunk_bytes;
  const int64_t begin = std::max(begin_, chunk_begin);
  const int64_t end = std::min(end_, chunk_begin + chunk_bytes);
  const char* at = bytes_ + (begin - begin_);
  sums_[piece] = crc32c(at, static_cast<size_t>(end - begin));
  for (int64_t offset = begin; offset < end;) {
    const ssize_t moved = pwrite(file_->descriptor_, at, static_cast<size_t>(end - offset), offset);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) file_->fail("write", moved == 0 ? EIO : errno);
    at += moved, offset += moved;
  }
#ifdef __linux__
  // The disk begins now, so that `finish` has little left to wait for. A hint: what goes wrong, fsync tells.
  sync_file_range(file_->descriptor_, begin, end - begin, SYNC_FILE_RANGE_WRITE);
#endif
}

void SummedWriter::end(const Append& append) {
  size_t piece = 0;
  if (append.begin_ % chunk_bytes_ != 0 && !append.sums_.empty()) {
    const int64_t chunk_end = (append.begin_ / chunk_bytes_ + 1) * chunk_bytes_;
    const int64_t joined_bytes = std::min(append.end_, chunk_end) - append.begin_;
    sums_.back() = crc32c_join(sums_.back(), append.sums_.front(), static_cast<uint64_t>(joined_bytes));
    piece = 1;
  }
  sums_.insert(sums_.end(), append.sums_.begin() + static_cast<std::ptrdiff_t>(piece), append.sums_.end());
}

void SummedWriter::finish() {
  const int synced = fsync(descriptor_) == 0 ? 0 : errno;
  const int closed = close(descriptor_) == 0 ? 0 : errno;
  descriptor_ = -1;
  if (synced != 0) fail("bring to the disk", synced);
  if (closed != 0) fail("close", closed);
}

void SummedWriter::fail(const char* action, int error) const {
  const std::string reason = std::strerror(error);
  throw CodedError("FILE_WRITE",
                   std::string("[file] expected to ") + action + " " + path_ + ": got \"" + reason +
                       "\" (give a folder of a sound disk with room)",
                   {{"path", path_}, {"action", action}, {"reason", reason}, {"errorNumber", std::to_string(error)}});
}

}  // namespace troupe
