// Float16 by the processor's own conversions, eight numbers at a time: by integers they take several times as long. For processors with AVX2;
// elsewhere it only compiles.
#pragma once

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <c10/util/Half.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/isa.h"

namespace troupe {

constexpr int64_t kHalves = 8;

// How many of so many numbers go by eight.
inline int64_t end_of_halves(int64_t numel) { return isa() >= Isa::avx2 ? numel / kHalves * kHalves : 0; }

TROUPE_INLINE void load_eight(const float* from, float* to) { std::memcpy(to, from, kHalves * sizeof(float)); }
TROUPE_INLINE void store_eight(const float* from, float* to) { std::memcpy(to, from, kHalves * sizeof(float)); }

#ifdef __x86_64__
TROUPE_AVX2 inline void load_eight(const c10::Half* from, float* to) {
  _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}

TROUPE_AVX2 inline void store_eight(const float* from, c10::Half* to) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT));
}
#else
inline void load_eight(const c10::Half*, float*) {}
inline void store_eight(const float*, c10::Half*) {}
#endif

}  // namespace troupe
