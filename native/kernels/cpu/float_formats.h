// Reads and writes float32, bfloat16 and float16 arrays as float, with integer operations that every instruction set has
// and the compiler vectorises. Rounding is to nearest, ties to even, as in libtorch; bits are the same everywhere.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cstdint>

#include "kernels/cpu/float_bits.h"
#include "kernels/cpu/isa.h"

namespace troupe {

TROUPE_INLINE float load(const float* from, int64_t index) { return from[index]; }

TROUPE_INLINE float load(const c10::BFloat16* from, int64_t index) {
  return float_of(static_cast<uint32_t>(from[index].x) << 16);
}

TROUPE_INLINE float load(const c10::Half* from, int64_t index) {
  constexpr uint32_t kRebias = (127u - 15u) << 23;
  const uint32_t half = from[index].x;
  const uint32_t magnitude = (half & 0x7FFFu) << 13;
  const uint32_t normal = magnitude + kRebias;
  // Below the smallest normal: with an exponent put in front, subtracting that power of two leaves the value.
  constexpr uint32_t kSmallestNormal = kRebias + (1u << 23);
  const uint32_t subnormal = bits_of(float_of(magnitude + kSmallestNormal) - float_of(kSmallestNormal));
  uint32_t bits = magnitude < (1u << 23) ? subnormal : normal;
  bits = magnitude >= (0x1Fu << 23) ? magnitude + 2 * kRebias : bits;  // infinity and NaN
  return float_of(bits | (half & 0x8000u) << 16);
}

TROUPE_INLINE void store(float* to, int64_t index, float value) { to[index] = value; }

TROUPE_INLINE void store(c10::BFloat16* to, int64_t index, float value) {
  const uint32_t bits = bits_of(value);
  const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const bool is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  to[index].x = static_cast<uint16_t>(is_nan ? 0x7FC0u : rounded);
}

TROUPE_INLINE void store(c10::Half* to, int64_t index, float value) {
  constexpr uint32_t kRebias = (127u - 15u) << 23;
  const uint32_t bits = bits_of(value);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  const uint32_t normal = (magnitude - kRebias + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13;
  // Below 2^-14: adding one half lets the adder round to multiples of 2^-24.
  const uint32_t subnormal = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
  uint32_t half = magnitude < (113u << 23) ? subnormal : normal;
  half = magnitude >= (143u << 23) ? 0x7C00u : half;       // 2^16 and above
  half = magnitude > 0x7F800000u ? 0x7E00u : half;         // NaN
  to[index].x = static_cast<uint16_t>(half | (bits >> 16 & 0x8000u));
}

// Calls `body` with a null pointer of the C++ type of `dtype`: float, BFloat16 or Half. False for any other dtype.
template <class Function>
bool with_float_type(c10::ScalarType dtype, const Function& body) {
  switch (dtype) {
    case c10::ScalarType::Float: body(static_cast<float*>(nullptr)); return true;
    case c10::ScalarType::BFloat16: body(static_cast<c10::BFloat16*>(nullptr)); return true;
    case c10::ScalarType::Half: body(static_cast<c10::Half*>(nullptr)); return true;
    default: return false;
  }
}

}  // namespace troupe
