// Elementary functions from additions, multiplications, products that are fused with a sum, and integer operations: no library.
// So they vectorise, and every instruction set gives the same bits. Polynomials are minimax ones for float32; those of log, sin and
// cos are Cephes's (Moshier).
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cpu/float_bits.h"
#include "kernels/cpu/isa.h"

namespace troupe {

// exp(value), within 1 ulp; 0 below -86.98 (no subnormal results), infinity above 88.72. NaN stays NaN.
TROUPE_WITH_TEXT(kExpText, TROUPE_INLINE float exp_f32(float value) {
  constexpr float kLowest = -87.33654f;   // here the power is 0
  constexpr float kHighest = 88.722839f;  // the last finite result
  constexpr float kLog2e = 1.44269504f;
  constexpr float kLn2High = 0.693147182f;
  constexpr float kLn2Low = -1.90465430e-9f;
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: a sum with it has no fraction bits left, and ends in the integer's
  const float shifted = fmaf(value, kLog2e, kMagic);
  const float exponent = shifted - kMagic;
  const float r = fmaf(exponent, -kLn2Low, fmaf(exponent, -kLn2High, value));
  // 2 exp(r), and half the power: 2^128 is no float, and 88.72 rounds up to that exponent.
  float p = 2.76290759e-3f;
  p = fmaf(p, r, 1.67374902e-2f);
  p = fmaf(p, r, 8.33367816e-2f);
  p = fmaf(p, r, 3.33330408e-1f);
  p = fmaf(p, r, 9.99999869e-1f);
  p = fmaf(p, r, 2.0f);
  p = fmaf(p, r, 2.0f);
  const uint32_t half_power = (bits_of(shifted) << 23) + (126u << 23);
  // Chosen last: from limits on the value the compiler makes branches, each with a copy of the polynomial.
  const float power = value < kLowest ? 0.0f : p * float_of(half_power);
  return value > kHighest ? float_of(0x7F800000u) : power;
})

// log(value) for a normal positive value, within 2 ulp.
TROUPE_WITH_TEXT(kLogText, TROUPE_INLINE float log_f32(float value) {
  constexpr float kLn2High = 0.693359375f;
  constexpr float kLn2Low = -2.12194440e-4f;
  constexpr uint32_t kRootHalf = 0x3F3504F3u;  // sqrt(1/2): mantissas are taken from [sqrt(1/2), sqrt(2))
  const uint32_t shifted = bits_of(value) - kRootHalf;
  const auto exponent = static_cast<float>(static_cast<int32_t>(shifted) >> 23);
  const float x = float_of((shifted & 0x007FFFFFu) + kRootHalf) - 1.0f;
  float p = 7.0376836292e-2f;
  p = p * x - 1.1514610310e-1f;
  p = p * x + 1.1676998740e-1f;
  p = p * x - 1.2420140846e-1f;
  p = p * x + 1.4249322787e-1f;
  p = p * x - 1.6668057665e-1f;
  p = p * x + 2.0000714765e-1f;
  p = p * x - 2.4999993993e-1f;
  p = p * x + 3.3333331174e-1f;
  const float square = x * x;
  const float tail = (p * (x * square) + exponent * kLn2Low) - 0.5f * square;
  return (x + tail) + exponent * kLn2High;
})

// sin and cos of a full turn times turns / 2^32, within 2 ulp of 1: the reduction is exact because it is on integers.
TROUPE_INLINE void sin_cos_turn(uint32_t turns, float& sine, float& cosine) {
  constexpr float kRadians = 1.46291807926716e-9f;  // 2 pi / 2^32
  const uint32_t quadrant = (turns + 0x20000000u) >> 30;
  const auto angle = static_cast<float>(static_cast<int32_t>(turns - (quadrant << 30))) * kRadians;  // within +-pi/4
  const float z = angle * angle;
  float s = -1.9515295891e-4f;
  s = s * z + 8.3321608736e-3f;
  s = s * z - 1.6666654611e-1f;
  s = s * (z * angle) + angle;
  float c = 2.443315711809948e-5f;
  c = c * z - 1.388731625493765e-3f;
  c = c * z + 4.166664568298827e-2f;
  c = (c * (z * z) - 0.5f * z) + 1.0f;
  const bool swapped = quadrant & 1u;
  const float first = swapped ? c : s;
  const float second = swapped ? s : c;
  sine = float_of(bits_of(first) ^ (quadrant & 2u) << 30);
  cosine = float_of(bits_of(second) ^ ((quadrant + 1u) & 2u) << 30);
}

}  // namespace troupe
