// A float32 and the bits it is made of, and the narrow formats' bits: with integer operations that every processor has, a GPU
// too. Rounding is to nearest, ties to even, as in libtorch, where it does not say by chance.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa.h"

// Defines functions, and their text, of which kernels are made while the program runs (kernels/cuda/chain_text.h).
#define TROUPE_WITH_TEXT(name, ...) \
  __VA_ARGS__                       \
  inline constexpr char name[] = #__VA_ARGS__;

namespace troupe {

TROUPE_INLINE uint32_t bits_of(float value) { return __builtin_bit_cast(uint32_t, value); }
TROUPE_INLINE float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }

TROUPE_WITH_TEXT(kBFloat16Text, TROUPE_INLINE float float_of_bfloat16(uint16_t bits) { return float_of(static_cast<uint32_t>(bits) << 16); }

TROUPE_INLINE uint16_t bfloat16_of(float value) {
  const uint32_t bits = bits_of(value);
  const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const bool is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  return static_cast<uint16_t>(is_nan ? 0x7FC0u : rounded);
})

TROUPE_WITH_TEXT(kFloat16Text, TROUPE_INLINE float float_of_float16(uint16_t half) {
  constexpr uint32_t kRebias = (127u - 15u) << 23;
  const uint32_t magnitude = (half & 0x7FFFu) << 13;
  const uint32_t normal = magnitude + kRebias;
  // Below the smallest normal: with an exponent put in front, subtracting that power of two leaves the value.
  constexpr uint32_t kSmallestNormal = kRebias + (1u << 23);
  const uint32_t subnormal = bits_of(float_of(magnitude + kSmallestNormal) - float_of(kSmallestNormal));
  uint32_t bits = magnitude < (1u << 23) ? subnormal : normal;
  bits = magnitude >= (0x1Fu << 23) ? magnitude + 2 * kRebias : bits;  // infinity and NaN
  return float_of(bits | (half & 0x8000u) << 16);
}

TROUPE_INLINE uint16_t float16_of(float value) {
  constexpr uint32_t kRebias = (127u - 15u) << 23;
  const uint32_t bits = bits_of(value);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  const uint32_t normal = (magnitude - kRebias + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13;
  // Below 2^-14: adding one half lets the adder round to multiples of 2^-24.
  const uint32_t subnormal = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
  uint32_t half = magnitude < (113u << 23) ? subnormal : normal;
  half = magnitude >= (143u << 23) ? 0x7C00u : half;       // 2^16 and above
  half = magnitude > 0x7F800000u ? 0x7E00u : half;         // NaN
  return static_cast<uint16_t>(half | (bits >> 16 & 0x8000u));
})

// Up or down by chance, of which `word` is 32 bits: the mean over many is the value. What is finite stays so.
TROUPE_INLINE uint16_t bfloat16_by_chance(float value, uint32_t word) {
  // The upper 16 bits, after a number below one unit in the last place has been added to the rest.
  const uint32_t bits = bits_of(value);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  const uint32_t moved = (magnitude + (word & 0xFFFFu)) >> 16;
  uint32_t rounded = moved > 0x7F7Fu ? 0x7F7Fu : moved;
  rounded = magnitude >= 0x7F800000u ? 0x7F80u : rounded;
  rounded = magnitude > 0x7F800000u ? 0x7FC0u : rounded;
  return static_cast<uint16_t>(rounded | (bits >> 16 & 0x8000u));
}

TROUPE_INLINE uint16_t float16_by_chance(float value, uint32_t word) {
  constexpr uint32_t kRebias = (127u - 15u) << 23;
  const uint32_t bits = bits_of(value);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  const uint32_t moved = (magnitude - kRebias + (word & 0x1FFFu)) >> 13;
  const uint32_t normal = moved > 0x7BFFu ? 0x7BFFu : moved;
  // Below 2^-14 the halves are multiples of 2^-24: 20 more bits of the value decide by chance.
  const float small = magnitude < (113u << 23) ? float_of(magnitude) : 0.0f;
  const uint32_t fixed = static_cast<uint32_t>(static_cast<int32_t>(small * 0x1p44f));
  const uint32_t subnormal = (fixed + (word & 0xFFFFFu)) >> 20;
  uint32_t rounded = magnitude < (113u << 23) ? subnormal : normal;
  rounded = magnitude >= (143u << 23) ? 0x7C00u : rounded;  // 2^16 and above
  rounded = magnitude > 0x7F800000u ? 0x7E00u : rounded;    // NaN
  return static_cast<uint16_t>(rounded | (bits >> 16 & 0x8000u));
}

}  // namespace troupe
