// Rounds numbers to bfloat16 by the processor's own instruction: numbers below the normal ones become zeros.
#pragma once

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <c10/util/BFloat16.h>

#include <cstdint>

#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"

namespace troupe {

constexpr int64_t kRounded = 32;             // numbers at a time: a line of the cache
constexpr int64_t kStreamedBytes = 1 << 20;  // results of this size would not stay in the cache

// `streams`: past the cache, to a line's begin; the thread fences before others read it.
#ifdef __x86_64__
TROUPE_AVX512_BF16 inline void round_numbers(const float* from, at::BFloat16* to, bool streams) {
  const auto rounded = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + kRounded / 2), _mm512_loadu_ps(from)));
  if (streams) _mm512_stream_si512(reinterpret_cast<__m512i*>(to), rounded);
  else _mm512_storeu_si512(to, rounded);
}

inline void fence_streams() { _mm_sfence(); }
#else
inline void round_numbers(const float* from, at::BFloat16* to, bool) {
  for (int64_t i = 0; i < kRounded; i++) store(to, i, from[i]);
}

inline void fence_streams() {}
#endif

}  // namespace troupe
