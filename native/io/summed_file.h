// Files whose bytes are known by checksums: a CRC-32C for each chunk of a fixed size, the last one shorter.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace troupe {

// Memory that begins on a page, as transfers past the page cache want it.
struct FreePages {
  void operator()(char* bytes) const { std::free(bytes); }
};
using Pages = std::unique_ptr<char, FreePages>;

// A new file, written from its beginning to its end, in units of complete chunks. Where the file system allows it they go past
// the page cache: the disk has them when the write is through, `finish` has little left to wait for, and the memory that
// training uses stays its own. What the system refuses throws CodedError FILE_WRITE.
class SummedWriter {
 public:
  // Makes a file where none is yet, and reserves `expected_bytes` for it, so that a full disk is known now; 0: not known.
  SummedWriter(const std::string& path, int64_t chunk_bytes, int64_t expected_bytes);
  ~SummedWriter();
  SummedWriter(const SummedWriter&) = delete;
  SummedWriter& operator=(const SummedWriter&) = delete;

  // Bytes on their way to the end of the file, unit by unit. They must not change before `end`.
  class Append {
   public:
    size_t num_pieces() const { return num_pieces_; }
    // Sums and writes one piece; from any thread, pieces in any order. What does not fill a unit is kept until it does.
    void write(size_t piece);

   private:
    friend class SummedWriter;
    SummedWriter* file_;
    const char* bytes_;
    int64_t begin_;
    int64_t end_;
    size_t num_pieces_;
    Pages rest_;                  // of the unit that this ends in, where it is not the one it begins in
    std::vector<uint32_t> sums_;  // of the units that this fills
  };

  // Takes the next place in the file. Before the next one is begun, this one's pieces are written and it was ended.
  std::shared_ptr<Append> begin(const void* bytes, size_t size_bytes);
  void end(Append& append);

  // Writes what is left, waits until the disk has the file, and closes it. Never tried twice: after a failed one the system may
  // have dropped the bytes and say that all is well.
  void finish();

  // The checksums of all chunks, once the file is finished.
  const std::vector<uint32_t>& sums() const { return sums_; }

 private:
  void reserve();
  void set_direct(bool direct);
  void write_unit(const char* bytes, int64_t offset);
  void write_all(const char* bytes, int64_t size_bytes, int64_t offset);
  // Puts the checksum of each chunk in `bytes` at `sums`.
  void sum(const char* bytes, int64_t size_bytes, uint32_t* sums) const;
  int64_t chunks_in(int64_t bytes) const { return (bytes + chunk_bytes_ - 1) / chunk_bytes_; }
  [[noreturn]] void fail(const char* action, int error) const;

  const std::string path_;
  const int64_t chunk_bytes_;
  const int64_t unit_bytes_;
  const int64_t expected_bytes_;
  int descriptor_ = -1;
  std::atomic<bool> direct_{false};
  int64_t size_bytes_ = 0;
  Pages rest_;  // of the unit that the file ends in so far
  std::vector<uint32_t> sums_;
};

// A file that is open for reading. Throws CodedError FILE_READ.
class SummedReader {
 public:
  // Refuses what is no regular file, symbolic links too.
  explicit SummedReader(const std::string& path);
  ~SummedReader();
  SummedReader(const SummedReader&) = delete;
  SummedReader& operator=(const SummedReader&) = delete;

  // One stretch of bytes to be brought into memory.
  struct Stretch {
    int64_t file_begin;
    int64_t memory_begin;
    int64_t size_bytes;
  };

  // Stretches on their way into memory. With checksums, complete chunks are read, and a piece is done only once its chunk's
  // checksum was found correct; a chunk that lies in one stretch is read right into place.
  class Read {
   public:
    size_t num_pieces() const { return pieces_.size(); }
    // From any thread, pieces in any order. Throws CodedError CHECKPOINT_DAMAGED, without checksums FILE_READ, naming the
    // file, the chunk and `what` is read.
    void read(size_t piece) const;
    // Bytes that the file was asked for, those included that are only summed.
    int64_t read_bytes() const { return read_bytes_; }

   private:
    friend class SummedReader;
    struct Whole;
    struct Chunk {
      int64_t begin;  // what is read of the file
      int64_t end;
      size_t first_part;
      size_t last_part;  // the one after the last
    };
    struct Piece {
      size_t first_chunk;
      size_t last_chunk;
    };
    void read_chunk(const Chunk& chunk) const;
    std::shared_ptr<const Whole> whole(const Chunk& chunk) const;
    void read_checked(char* into, const Chunk& chunk) const;
    uint32_t expected(const Chunk& chunk) const;
    [[noreturn]] void wrong(const Chunk& chunk, const std::string& expected, const std::string& got) const;

    const SummedReader* file_;
    std::string what_;
    char* memory_;
    int64_t chunk_bytes_;
    std::vector<uint32_t> sums_;  // empty: not checked
    std::vector<Stretch> parts_;  // cut at the chunks' ends
    std::vector<Chunk> chunks_;
    std::vector<Piece> pieces_;
    mutable std::atomic<int64_t> read_bytes_{0};
  };

  // Throws CodedError TENSOR_ARGUMENT for a stretch beyond the file or the memory. `sums`: one a chunk, or none.
  std::shared_ptr<Read> begin(std::vector<Stretch> stretches, void* memory, int64_t memory_bytes, int64_t chunk_bytes,
                              std::vector<uint32_t> sums, const std::string& what) const;

  int64_t size_bytes() const { return size_bytes_; }

 private:
  const std::string path_;
  int descriptor_ = -1;
  int64_t size_bytes_ = 0;
  // The last chunks that were read for a part of them and found good: the next tensor begins where the last one ended.
  mutable std::mutex mutex_;
  mutable std::deque<std::shared_ptr<const Read::Whole>> kept_;
};

}  // namespace troupe
