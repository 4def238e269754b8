// Philox4x32-10 on a GPU: the words of kernels/cpu/philox.h.
#pragma once

#include "kernels/cuda/formats.cuh"

namespace troupe::cuda {

// The words 4 * counter to 4 * counter + 3 of the row (seed, stream).
__device__ __forceinline__ void philox(PhiloxPlace row, uint64_t counter, uint32_t (&words)[4]) {
  auto c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
  auto c2 = static_cast<uint32_t>(row.stream), c3 = static_cast<uint32_t>(row.stream >> 32);
  auto key0 = static_cast<uint32_t>(row.seed), key1 = static_cast<uint32_t>(row.seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; round++) {
    const uint64_t product0 = uint64_t{0xD2511F53u} * c0;
    const uint64_t product1 = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ key0;
    c1 = static_cast<uint32_t>(product1);
    c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ key1;
    c3 = static_cast<uint32_t>(product0);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  words[0] = c0;
  words[1] = c1;
  words[2] = c2;
  words[3] = c3;
}

// Word number `place` of the row.
__device__ __forceinline__ uint32_t philox_word(PhiloxPlace row, uint64_t place) {
  uint32_t words[4];
  philox(row, place / 4, words);
  const uint32_t low = place % 2 == 0 ? words[0] : words[1];
  const uint32_t high = place % 2 == 0 ? words[2] : words[3];
  return place % 4 < 2 ? low : high;
}

// N words from number `place` on; as cheap as one where `place` is a multiple of four.
template <int N>
__device__ __forceinline__ void philox_words(PhiloxPlace row, uint64_t place, uint32_t (&words)[N]) {
  if constexpr (N == 4) {
    if (place % 4 == 0) return philox(row, place / 4, words);
  }
#pragma unroll
  for (int j = 0; j < N; j++) words[j] = philox_word(row, place + j);
}

}  // namespace troupe::cuda
