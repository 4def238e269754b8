#include "io/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#include <nmmintrin.h>
#define HAS_CRC_INSTRUCTION 1
#else
#define HAS_CRC_INSTRUCTION 0
#endif

// Below, a remainder is a polynomial over GF(2) whose coefficient of x^0 is the highest bit.
namespace troupe {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;
constexpr uint32_t kOne = 0x80000000;

constexpr uint32_t times_x(uint32_t a) { return (a >> 1) ^ ((a & 1) ? kPolynomial : 0); }

constexpr uint32_t times(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (; a != 0; a <<= 1, b = times_x(b)) {
    if (a & kOne) product ^= b;
  }
  return product;
}

// x^(8 n): what a remainder is multiplied by when n zero bytes follow.
constexpr uint32_t shift_by(uint64_t bytes) {
  uint32_t square = kOne >> 8;  // x^8
  uint32_t power = kOne;
  for (; bytes != 0; bytes >>= 1, square = times(square, square)) {
    if (bytes & 1) power = times(power, square);
  }
  return power;
}

// Row k: the remainder of each byte with k zero bytes behind it, so that eight bytes are taken at once.
using Rows = std::array<std::array<uint32_t, 256>, 8>;

constexpr Rows rows_of_zeros() {
  Rows rows{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = times_x(rest);
    rows[0][byte] = rest;
  }
  for (size_t k = 1; k < rows.size(); ++k) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t rest = rows[k - 1][byte];
      rows[k][byte] = (rest >> 8) ^ rows[0][rest & 0xff];
    }
  }
  return rows;
}

constexpr Rows kRows = rows_of_zeros();

uint64_t load(const unsigned char* from) {
  uint64_t word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

#if HAS_CRC_INSTRUCTION

// The instruction takes one word a cycle but answers after three, so three stretches are summed side by side.
constexpr size_t kStretchBytes = 2048;

// A remainder's four bytes, each with a stretch of zeros behind it.
constexpr std::array<std::array<uint32_t, 256>, 4> stretch_of_zeros() {
  std::array<std::array<uint32_t, 256>, 4> rows{};
  const uint32_t power = shift_by(kStretchBytes);
  for (size_t k = 0; k < rows.size(); ++k) {
    for (uint32_t byte = 0; byte < 256; ++byte) rows[k][byte] = times(power, byte << (8 * k));
  }
  return rows;
}

constexpr auto kStretch = stretch_of_zeros();

inline uint64_t past_stretch(uint64_t rest) {
  return kStretch[0][rest & 0xff] ^ kStretch[1][(rest >> 8) & 0xff] ^ kStretch[2][(rest >> 16) & 0xff] ^ kStretch[3][rest >> 24];
}

__attribute__((target("sse4.2"))) uint32_t rest_by_instruction(const unsigned char* at, size_t size_bytes, uint32_t before) {
  uint64_t rest = before;
  for (; size_bytes >= 3 * kStretchBytes; size_bytes -= 3 * kStretchBytes, at += 3 * kStretchBytes) {
    uint64_t second = 0;
    uint64_t third = 0;
    for (size_t i = 0; i < kStretchBytes; i += 8) {
      rest = _mm_crc32_u64(rest, load(at + i));
      second = _mm_crc32_u64(second, load(at + kStretchBytes + i));
      third = _mm_crc32_u64(third, load(at + 2 * kStretchBytes + i));
    }
    rest = past_stretch(past_stretch(rest) ^ second) ^ third;
  }
  for (; size_bytes >= 8; size_bytes -= 8, at += 8) rest = _mm_crc32_u64(rest, load(at));
  for (; size_bytes > 0; --size_bytes) rest = _mm_crc32_u8(static_cast<uint32_t>(rest), *at++);
  return static_cast<uint32_t>(rest);
}

#endif

uint32_t rest_by_table(const unsigned char* at, size_t size_bytes, uint32_t rest) {
  for (; size_bytes >= 8; size_bytes -= 8, at += 8) {
    uint64_t word = 0;
    for (int i = 7; i >= 0; --i) word = (word << 8) | at[i];
    word ^= rest;
    rest = 0;
    for (size_t i = 0; i < 8; ++i) rest ^= kRows[7 - i][(word >> (8 * i)) & 0xff];
  }
  for (; size_bytes > 0; --size_bytes) rest = (rest >> 8) ^ kRows[0][(rest ^ *at++) & 0xff];
  return rest;
}

}  // namespace

namespace detail {

uint32_t crc32c_by_table(const void* bytes, size_t size_bytes, uint32_t before) {
  return ~rest_by_table(static_cast<const unsigned char*>(bytes), size_bytes, ~before);
}

#if HAS_CRC_INSTRUCTION
bool crc32c_has_instruction() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("sse4.2");
}

uint32_t crc32c_by_instruction(const void* bytes, size_t size_bytes, uint32_t before) {
  return ~rest_by_instruction(static_cast<const unsigned char*>(bytes), size_bytes, ~before);
}
#else
bool crc32c_has_instruction() { return false; }
uint32_t crc32c_by_instruction(const void* bytes, size_t size_bytes, uint32_t before) {
  return crc32c_by_table(bytes, size_bytes, before);
}
#endif

}  // namespace detail

uint32_t crc32c(const void* bytes, size_t size_bytes, uint32_t before) {
  static const bool instruction = detail::crc32c_has_instruction();
  return instruction ? detail::crc32c_by_instruction(bytes, size_bytes, before)
                     : detail::crc32c_by_table(bytes, size_bytes, before);
}

}  // namespace troupe
