// What a checkpoint may hand to native code: a file of any bytes and size, chunks and checksums that a manifest claims, and
// stretches that a reader asks for. Whatever they are, reading ends in CodedError or with the file's bytes in their places, and
// nothing beyond the memory is touched (AddressSanitizer looks).
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "io/crc32c.h"
#include "io/summed_file.h"

namespace {

// Takes numbers from the front of the input.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  int64_t number() {
    int64_t value = 0;
    const size_t taken = size_ < 8 ? size_ : 8;
    std::memcpy(&value, data_, taken);
    data_ += taken, size_ -= taken;
    return value;
  }
  // Mostly small, for most numbers mean nothing: from -2 to `most` + 1, or anything at all.
  int64_t near(int64_t most) {
    const int64_t value = number();
    if ((value & 0xf) == 0) return value >> 4;
    return static_cast<int64_t>((static_cast<uint64_t>(value) >> 4) % static_cast<uint64_t>(most + 4)) - 2;
  }
  const uint8_t* rest() const { return data_; }
  size_t size() const { return size_; }

 private:
  const uint8_t* data_;
  size_t size_;
};

void require(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string path = "fuzzed-file";  // in the folder it is started in
  Bytes input(data, size);
  const int64_t chunk_bytes = (static_cast<uint64_t>(input.number()) % 97) + 1;
  const bool checked = (input.number() & 1) != 0;
  const size_t num_stretches = static_cast<uint64_t>(input.number()) % 6;
  const int64_t memory_bytes = static_cast<int64_t>(static_cast<uint64_t>(input.number()) % 300);
  std::vector<troupe::SummedReader::Stretch> stretches(num_stretches);
  for (auto& stretch : stretches) stretch = {input.near(400), input.near(memory_bytes), input.near(memory_bytes)};
  const bool damaged = (input.number() & 3) == 0;
  const auto file_bytes = static_cast<int64_t>(input.size());
  const int descriptor = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  require(descriptor >= 0 && write(descriptor, input.rest(), input.size()) == static_cast<ssize_t>(input.size()));
  close(descriptor);
  std::vector<uint32_t> sums;
  for (int64_t begin = 0; checked && begin < file_bytes; begin += chunk_bytes) {
    const int64_t chunk = std::min(chunk_bytes, file_bytes - begin);
    sums.push_back(troupe::crc32c(input.rest() + begin, static_cast<size_t>(chunk)));
    const uint32_t before = troupe::crc32c(input.rest(), static_cast<size_t>(begin));
    require(troupe::crc32c(input.rest() + begin, static_cast<size_t>(chunk), before) ==
            troupe::crc32c(input.rest(), static_cast<size_t>(begin + chunk)));
  }
  if (damaged && !sums.empty()) sums[sums.size() / 2] ^= 1;
  const std::vector<troupe::SummedReader::Stretch> asked = stretches;
  const auto memory = std::make_unique<char[]>(static_cast<size_t>(memory_bytes));  // of exactly that size, for the sanitizer
  try {
    troupe::SummedReader reader(path);
    const auto read = reader.begin(stretches, memory.get(), memory_bytes, chunk_bytes, sums, "fuzz");
    for (size_t piece = 0; piece < read->num_pieces(); ++piece) read->read(piece);
    // Where several go to one place, either may have come last.
    for (size_t i = 0; asked.size() == 1 && i < asked.size(); ++i) {
      require(std::memcmp(memory.get() + asked[i].memory_begin, input.rest() + asked[i].file_begin,
                          static_cast<size_t>(asked[i].size_bytes)) == 0);
    }
  } catch (const troupe::CodedError&) {
  }
  return 0;
}
