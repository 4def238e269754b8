#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "core/error.h"
#include "io/crc32c.h"
#include "io/summed_file.h"

namespace troupe {
namespace {

constexpr int64_t kPageBytes = 4096;
// Bytes of one write: enough for a disk's full speed when several threads write.
constexpr int64_t kUnitBytes = int64_t{1} << 20;

Pages new_pages(int64_t bytes) {
  const int64_t whole = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  Pages pages(static_cast<char*>(std::aligned_alloc(kPageBytes, static_cast<size_t>(whole))));
  if (!pages) throw std::bad_alloc();
  return pages;
}

// Pages of this thread, to write from what does not begin on a page.
char* spare_pages(int64_t bytes) {
  thread_local Pages pages;
  thread_local int64_t held_bytes = 0;
  if (held_bytes < bytes) pages = new_pages(bytes), held_bytes = bytes;
  return pages.get();
}

bool on_page(const void* bytes) { return reinterpret_cast<uintptr_t>(bytes) % kPageBytes == 0; }

}  // namespace

SummedWriter::SummedWriter(const std::string& path, int64_t chunk_bytes, int64_t expected_bytes)
    : path_(path),
      chunk_bytes_(chunk_bytes),
      unit_bytes_((kUnitBytes + chunk_bytes - 1) / chunk_bytes * chunk_bytes),
      expected_bytes_(expected_bytes) {
  descriptor_ = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("make", errno);
  try {
    reserve();
  } catch (...) {
    close(descriptor_);
    unlink(path.c_str());
    throw;
  }
  if (unit_bytes_ % kPageBytes == 0) set_direct(true);
}

SummedWriter::~SummedWriter() {
  if (descriptor_ >= 0) close(descriptor_);
}

void SummedWriter::reserve() {
#ifdef __linux__
  // Not posix_fallocate: where the file system cannot, that writes every block.
  if (expected_bytes_ == 0 || fallocate(descriptor_, 0, 0, expected_bytes_) == 0) return;
  if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR) fail("reserve", errno);
#endif
}

void SummedWriter::set_direct(bool direct) {
#ifdef O_DIRECT
  const int flags = fcntl(descriptor_, F_GETFL);
  direct_ = fcntl(descriptor_, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0 && direct;
#else
  direct_ = false;
#endif
}

std::shared_ptr<SummedWriter::Append> SummedWriter::begin(const void* bytes, size_t size_bytes) {
  auto append = std::make_shared<Append>();
  append->file_ = this;
  append->bytes_ = static_cast<const char*>(bytes);
  append->begin_ = size_bytes_;
  append->end_ = size_bytes_ + static_cast<int64_t>(size_bytes);
  const int64_t first = append->begin_ / unit_bytes_;
  const int64_t last = append->end_ / unit_bytes_;  // not filled
  const bool ends_within = append->end_ % unit_bytes_ != 0;
  append->num_pieces_ = size_bytes == 0 ? 0 : static_cast<size_t>(last - first + ends_within);
  append->sums_.resize(static_cast<size_t>((last - first) * (unit_bytes_ / chunk_bytes_)));
  const bool begins_unit = append->begin_ % unit_bytes_ == 0 || last > first;
  if (size_bytes > 0 && ends_within && begins_unit) append->rest_ = new_pages(unit_bytes_);
  size_bytes_ = append->end_;
  return append;
}

void SummedWriter::Append::write(size_t piece) {
  const int64_t unit_bytes = file_->unit_bytes_;
  const int64_t unit_begin = (begin_ / unit_bytes + static_cast<int64_t>(piece)) * unit_bytes;
  const int64_t begin = std::max(begin_, unit_begin);
  const int64_t end = std::min(end_, unit_begin + unit_bytes);
  const char* from = bytes_ + (begin - begin_);
  const bool fills = end == unit_begin + unit_bytes;
  const char* unit = from;
  if (!fills || begin > unit_begin) {
    char* rest = fills || !rest_ ? file_->rest_.get() : rest_.get();
    std::memcpy(rest + (begin - unit_begin), from, static_cast<size_t>(end - begin));
    unit = rest;
  }
  if (!fills) return;
  file_->sum(unit, unit_bytes, &sums_[piece * static_cast<size_t>(unit_bytes / file_->chunk_bytes_)]);
  file_->write_unit(unit, unit_begin);
}

void SummedWriter::end(Append& append) {
  sums_.insert(sums_.end(), append.sums_.begin(), append.sums_.end());
  if (append.rest_) {
    rest_ = std::move(append.rest_);
  } else if (size_bytes_ % unit_bytes_ == 0) {
    rest_.reset();
  }
}

void SummedWriter::finish() {
  const int64_t rest_bytes = size_bytes_ % unit_bytes_;
  if (rest_bytes > 0) {
    const size_t known = sums_.size();
    sums_.resize(known + static_cast<size_t>(chunks_in(rest_bytes)));
    sum(rest_.get(), rest_bytes, &sums_[known]);
    if (direct_) set_direct(false);  // no complete pages
    write_all(rest_.get(), rest_bytes, size_bytes_ - rest_bytes);
  }
  if (expected_bytes_ > size_bytes_ && ftruncate(descriptor_, size_bytes_) != 0) fail("cut", errno);
  const int synced = fsync(descriptor_) == 0 ? 0 : errno;
  const int closed = close(descriptor_) == 0 ? 0 : errno;
  descriptor_ = -1;
  if (synced != 0) fail("bring to the disk", synced);
  if (closed != 0) fail("close", closed);
}

void SummedWriter::sum(const char* bytes, int64_t size_bytes, uint32_t* sums) const {
  for (int64_t at = 0; at < size_bytes; at += chunk_bytes_) {
    *sums++ = crc32c(bytes + at, static_cast<size_t>(std::min(chunk_bytes_, size_bytes - at)));
  }
}

void SummedWriter::write_unit(const char* bytes, int64_t offset) {
  if (direct_ && !on_page(bytes)) {
    char* spare = spare_pages(unit_bytes_);
    std::memcpy(spare, bytes, static_cast<size_t>(unit_bytes_));
    bytes = spare;
  }
  write_all(bytes, unit_bytes_, offset);
}

void SummedWriter::write_all(const char* bytes, int64_t size_bytes, int64_t offset) {
  for (const int64_t end = offset + size_bytes; offset < end;) {
    const bool was_direct = direct_;  // another thread may change it meanwhile
    const ssize_t moved = pwrite(descriptor_, bytes, static_cast<size_t>(end - offset), offset);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0 && errno == EINVAL && was_direct) {
      set_direct(false);  // a file system with pages of its own size
      continue;
    }
    if (moved <= 0) fail("write", moved == 0 ? EIO : errno);
    bytes += moved, offset += moved;
  }
}

void SummedWriter::fail(const char* action, int error) const {
  const std::string reason = std::strerror(error);
  throw CodedError("FILE_WRITE",
                   std::string("[file] expected to ") + action + " " + path_ + ", got \"" + reason +
                       "\" (give a folder of a sound disk with room)",
                   {{"path", path_}, {"action", action}, {"reason", reason}, {"errorNumber", std::to_string(error)}});
}

}  // namespace troupe
