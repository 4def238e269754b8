// Norms and bias-GELU of one element of a row, for the CPU's loops and the GPU's threads alike.
#pragma once

#include "kernels/cpu/elementary.h"
#include "kernels/cpu/isa.h"

namespace troupe {

// A row's element as its norm sees it.
TROUPE_INLINE float normed(float value, float mean, float rstd) { return (value - mean) * rstd; }

// dx of y = weight xhat from gw = dy weight: `mean_scaled` is the row's mean of gw, `mean_projected` that of gw xhat.
TROUPE_INLINE float norm_gradient(float scaled, float xhat, float rstd, float mean_scaled, float mean_projected) {
  return rstd * (scaled - mean_scaled - xhat * mean_projected);
}

// The same of a norm without a mean.
TROUPE_INLINE float rms_norm_gradient(float scaled, float xhat, float rstd, float mean_projected) {
  return rstd * (scaled - xhat * mean_projected);
}

// NaN is the largest of all.
TROUPE_WITH_TEXT(kLargerText, TROUPE_INLINE float larger_of(float a, float b) {
  const float more = b > a ? b : a;
  return b != b ? b : (a != a ? a : more);
})

// log(x) of any number: subnormal ones are made normal first.
TROUPE_WITH_TEXT(kLogOfText, TROUPE_INLINE float log_of(float x) {
  constexpr float kLeastNormal = 1.17549435e-38f;
  constexpr float kScale = 8388608.0f;  // 2^23
  constexpr float kLogOfScale = 15.9423847f;
  const float infinity = float_of(0x7F800000u);
  const bool is_small = x < kLeastNormal;
  const float log = log_f32(is_small ? x * kScale : x) - (is_small ? kLogOfScale : 0.0f);
  const float finite = x < infinity ? log : x;
  return x > 0.0f ? finite : (x == 0.0f ? -infinity : float_of(0x7FC00000u));
})

// tanh(x), within 2 ulp: a minimax polynomial around 0, where the difference from 1 would have few digits.
TROUPE_WITH_TEXT(kTanhText, TROUPE_INLINE float tanh_f32(float x) {
  const float size = fabsf(x);
  const float square = x * x;
  float p = -5.704996e-3f;
  p = fmaf(p, square, 2.0639095e-2f);
  p = fmaf(p, square, -5.373972e-2f);
  p = fmaf(p, square, 1.3331442e-1f);
  p = fmaf(p, square, -3.333328e-1f);
  const float near = fmaf(x * square, p, x);
  const float far = 1.0f - 2.0f / (exp_f32(2.0f * size) + 1.0f);
  return size < 0.625f ? near : (x < 0.0f ? -far : far);
})

TROUPE_WITH_TEXT(kSigmoidText, TROUPE_INLINE float sigmoid_f32(float x) { return 1.0f / (1.0f + exp_f32(-x)); }

TROUPE_INLINE float silu_slope(float x) {
  const float s = sigmoid_f32(x);
  return fmaf(x * s, 1.0f - s, s);
})

// gelu(u) in GPT-2's form: see bias_gelu.cc.
TROUPE_WITH_TEXT(kTanhGeluText, struct TanhGelu {
  static constexpr float kLinear = 1.5957691216f;  // 2 sqrt(2 / pi)
  static constexpr float kCubic = 0.044715f * kLinear;

  static TROUPE_INLINE float gate(float u) { return 1.0f / (1.0f + exp_f32(-u * fmaf(kCubic, u * u, kLinear))); }
  static TROUPE_INLINE float value(float u) { return u * gate(u); }
  static TROUPE_INLINE float slope(float u) {
    const float s = gate(u);
    return fmaf(u * s * (1.0f - s), fmaf(3.0f * kCubic, u * u, kLinear), s);
  }
};)

// gelu(u) exactly: see there.
TROUPE_WITH_TEXT(kExactGeluText, struct ExactGelu {
  static constexpr float kScale = 0.46f * 0.70710678f;
  static constexpr float kDensity = 0.39894228f;  // 1 / sqrt(2 pi)

  // Phi(u), where `bell` is exp(-u^2/2).
  static TROUPE_INLINE float share_below(float u, float bell) {
    const float t = 1.0f / fmaf(kScale, u < 0.0f ? -u : u, 1.0f);
    float p = 0.0460941244f;
    p = fmaf(p, t, -0.2320205283f);
    p = fmaf(p, t, 0.3702323264f);
    p = fmaf(p, t, -0.1273359589f);
    p = fmaf(p, t, 0.1993840736f);
    p = fmaf(p, t, 0.1123480205f);
    p = fmaf(p, t, 0.1312979446f);
    const float q = bell * (t * p);
    return u < 0.0f ? q : 1.0f - q;
  }
  static TROUPE_INLINE float bell(float u) { return exp_f32(-0.5f * (u * u)); }
  static TROUPE_INLINE float value(float u) { return u * share_below(u, bell(u)); }
  static TROUPE_INLINE float slope(float u) {
    const float height = bell(u);
    return fmaf(u, kDensity * height, share_below(u, height));
  }
};)

}  // namespace troupe
