#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "io/crc32c.h"
#include "io/summed_file.h"

namespace troupe {
namespace {

// Enough for a piece to be worth a thread's while, few enough for all threads to have one.
constexpr int64_t kReadBytes = int64_t{2} << 20;
// Bytes that are summed while they are still in the cache of the core that read them.
constexpr int64_t kCacheBytes = int64_t{256} << 10;
// Chunks of a file that are kept in case the next read begins in one.
constexpr size_t kMaxKept = 4;

std::string hex(uint32_t sum) {
  char text[9];
  std::snprintf(text, sizeof(text), "%08x", sum);
  return text;
}

[[noreturn]] void unreadable(const std::string& path, const std::string& reason, int error) {
  throw CodedError("FILE_READ", "[file] expected to read " + path + ", got \"" + reason + "\" (give a regular file of a sound disk)",
                   {{"path", path}, {"reason", reason}, {"errorNumber", std::to_string(error)}});
}

// Throws for bytes that are wrong: damage if the file has checksums, else a file that is not the expected one.
[[noreturn]] void wrong_bytes(bool known, const std::string& path, const std::string& what, int64_t begin, int64_t end,
                              const std::string& expected, const std::string& got) {
  throw CodedError(known ? "CHECKPOINT_DAMAGED" : "FILE_READ",
                   std::string(known ? "[checkpoint]" : "[file]") + " expected " + expected + " in bytes " + std::to_string(begin) +
                       " to " + std::to_string(end) + " of " + path + ", read for " + what + ", got " + got +
                       (known ? " (resume from an older checkpoint, or restore the file)" : " (fetch or save it again)"),
                   {{"path", path},
                    {"what", what},
                    {"offsetBytes", std::to_string(begin)},
                    {"endBytes", std::to_string(end)},
                    {"expected", expected},
                    {"got", got}});
}

}  // namespace

SummedReader::SummedReader(const std::string& path) : path_(path) {
  // Without O_NONBLOCK a pipe in the file's place would hold this thread for ever.
  descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor_ < 0) unreadable(path, errno == ELOOP ? "a symbolic link" : std::strerror(errno), errno);
  struct stat status {};
  const bool known = fstat(descriptor_, &status) == 0;
  const int error = known ? EINVAL : errno;
  if (known && S_ISREG(status.st_mode)) {
    size_bytes_ = status.st_size;
    return;
  }
  close(descriptor_);
  unreadable(path, known ? "no regular file" : std::strerror(error), error);
}

SummedReader::~SummedReader() { close(descriptor_); }

std::shared_ptr<SummedReader::Read> SummedReader::begin(std::vector<Stretch> stretches, void* memory, int64_t memory_bytes,
                                                        int64_t chunk_bytes, std::vector<uint32_t> sums,
                                                        const std::string& what) const {
  auto plan = std::make_shared<Read>();
  plan->file_ = this;
  plan->what_ = what;
  plan->memory_ = static_cast<char*>(memory);
  plan->chunk_bytes_ = chunk_bytes;
  plan->sums_ = std::move(sums);
  const auto num_chunks = static_cast<size_t>((size_bytes_ + chunk_bytes - 1) / chunk_bytes);
  if (!plan->sums_.empty() && plan->sums_.size() != num_chunks) {
    throw CodedError("TENSOR_ARGUMENT", "[file] expected a checksum for each of " + std::to_string(num_chunks) + " chunks of " +
                                            path_ + ", got " + std::to_string(plan->sums_.size()));
  }
  std::sort(stretches.begin(), stretches.end(),
            [](const Stretch& a, const Stretch& b) { return a.file_begin < b.file_begin; });
  const auto fits = [&](const Stretch& stretch) {
    return stretch.file_begin >= 0 && stretch.memory_begin >= 0 && stretch.size_bytes >= 0 &&
           stretch.size_bytes <= size_bytes_ - stretch.file_begin && stretch.size_bytes <= memory_bytes - stretch.memory_begin;
  };
  if (!std::all_of(stretches.begin(), stretches.end(), fits)) {
    throw CodedError("TENSOR_ARGUMENT", "[file] expected stretches within the " + std::to_string(size_bytes_) + " bytes of " + path_ +
                                            " and " + std::to_string(memory_bytes) + " of memory, got one beyond");
  }
  for (size_t next = 0; next < stretches.size();) {
    Stretch rest = stretches[next++];
    // Stretches that continue each other both in the file and in memory are joined.
    while (next < stretches.size() && stretches[next].file_begin == rest.file_begin + rest.size_bytes &&
           stretches[next].memory_begin == rest.memory_begin + rest.size_bytes) {
      rest.size_bytes += stretches[next++].size_bytes;
    }
    while (rest.size_bytes > 0) {
      const int64_t chunk_begin = rest.file_begin / chunk_bytes * chunk_bytes;
      const int64_t chunk_end = std::min(chunk_begin + chunk_bytes, size_bytes_);
      const int64_t taken = std::min(rest.size_bytes, chunk_end - rest.file_begin);
      const bool checked = !plan->sums_.empty();
      const size_t part = plan->parts_.size();
      if (!plan->chunks_.empty() && plan->chunks_.back().begin / chunk_bytes * chunk_bytes == chunk_begin) {
        auto& chunk = plan->chunks_.back();
        chunk.end = std::max(chunk.end, checked ? chunk_end : rest.file_begin + taken);
        chunk.last_part = part + 1;
      } else if (checked) {
        plan->chunks_.push_back({chunk_begin, chunk_end, part, part + 1});
      } else {
        plan->chunks_.push_back({rest.file_begin, rest.file_begin + taken, part, part + 1});
      }
      plan->parts_.push_back({rest.file_begin, rest.memory_begin, taken});
      rest.file_begin += taken, rest.memory_begin += taken, rest.size_bytes -= taken;
    }
  }
  int64_t piece_bytes = kReadBytes;
  for (size_t i = 0; i < plan->chunks_.size(); ++i) {
    if (piece_bytes >= kReadBytes) plan->pieces_.push_back({i, i}), piece_bytes = 0;
    plan->pieces_.back().last_chunk = i + 1;
    piece_bytes += plan->chunks_[i].end - plan->chunks_[i].begin;
  }
  return plan;
}

// A chunk's bytes, and the checksum that they have.
struct SummedReader::Read::Whole {
  Whole(int64_t from, int64_t to) : begin(from), end(to), bytes(new char[static_cast<size_t>(to - from)]) {}

  const int64_t begin;
  const int64_t end;
  const std::unique_ptr<char[]> bytes;  // not filled with zeros first
  uint32_t sum = 0;
};

void SummedReader::Read::read(size_t piece) const {
  for (size_t i = pieces_[piece].first_chunk; i < pieces_[piece].last_chunk; ++i) read_chunk(chunks_[i]);
}

void SummedReader::Read::read_chunk(const Chunk& chunk) const {
  const Stretch& first = parts_[chunk.first_part];
  const bool in_place = chunk.last_part - chunk.first_part == 1 && first.file_begin == chunk.begin &&
                        first.size_bytes == chunk.end - chunk.begin;
  if (in_place) {
    read_checked(memory_ + first.memory_begin, chunk);
    return;
  }
  const std::shared_ptr<const Whole> found = whole(chunk);
  for (size_t i = chunk.first_part; i < chunk.last_part; ++i) {
    const Stretch& part = parts_[i];
    std::memcpy(memory_ + part.memory_begin, found->bytes.get() + (part.file_begin - chunk.begin),
                static_cast<size_t>(part.size_bytes));
  }
}

std::shared_ptr<const SummedReader::Read::Whole> SummedReader::Read::whole(const Chunk& chunk) const {
  const bool checked = !sums_.empty();
  if (checked) {
    const std::lock_guard<std::mutex> lock(file_->mutex_);
    for (const auto& kept : file_->kept_) {
      if (kept->begin == chunk.begin && kept->end == chunk.end && kept->sum == expected(chunk)) return kept;
    }
  }
  auto fresh = std::make_shared<Whole>(chunk.begin, chunk.end);
  read_checked(fresh->bytes.get(), chunk);
  if (!checked) return fresh;
  fresh->sum = expected(chunk);
  const std::lock_guard<std::mutex> lock(file_->mutex_);
  file_->kept_.push_back(fresh);
  if (file_->kept_.size() > kMaxKept) file_->kept_.pop_front();
  return fresh;
}

void SummedReader::Read::read_checked(char* into, const Chunk& chunk) const {
  read_bytes_ += chunk.end - chunk.begin;
  uint32_t sum = 0;
  for (int64_t offset = chunk.begin; offset < chunk.end;) {
    const auto wanted = static_cast<size_t>(std::min(kCacheBytes, chunk.end - offset));
    const ssize_t moved = pread(file_->descriptor_, into, wanted, offset);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) wrong(chunk, "readable bytes", std::strerror(errno));
    if (moved == 0) wrong(chunk, "all bytes", "the end of the file at " + std::to_string(offset) + ": it has shrunk");
    if (!sums_.empty()) sum = crc32c(into, static_cast<size_t>(moved), sum);
    into += moved, offset += moved;
  }
  if (!sums_.empty() && sum != expected(chunk)) wrong(chunk, "CRC-32C " + hex(expected(chunk)), hex(sum));
}

uint32_t SummedReader::Read::expected(const Chunk& chunk) const { return sums_[static_cast<size_t>(chunk.begin / chunk_bytes_)]; }

void SummedReader::Read::wrong(const Chunk& chunk, const std::string& expected, const std::string& got) const {
  wrong_bytes(!sums_.empty(), file_->path_, what_, chunk.begin, chunk.end, expected, got);
}

}  // namespace troupe
