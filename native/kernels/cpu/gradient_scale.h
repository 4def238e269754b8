// A gradient's scale made of the squares of its parts: the same on every device.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cpu/isa.h"

namespace troupe {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// The ranks' sums of squares of one block: from `begin`, a row of `shares` a rank has `count` of each kind.
struct BlockSquares {
  const double* shares;
  int64_t members, row, begin, count;
};

// Sums are added in groups of this many, so that a device adds up many groups at once. The order does not depend on the number of
// ranks: a kind's sums lie in the order of the parameters, and those of padding are zeros behind them.
constexpr int64_t kSumsAGroup = 32;

TROUPE_INLINE int64_t groups_of(const BlockSquares& sums) {
  return (sums.members * sums.count + kSumsAGroup - 1) / kSumsAGroup;
}

TROUPE_INLINE double group_sum(const BlockSquares& sums, int64_t kind, int64_t group) {
  const int64_t first = group * kSumsAGroup;
  int64_t member = first / sums.count, place = first % sums.count;
  double sum = 0;
  for (int64_t i = 0; i < kSumsAGroup && member < sums.members; i++) {
    sum += sums.shares[member * sums.row + sums.begin + kind * sums.count + place];
    if (++place < sums.count) continue;
    place = 0;
    member++;
  }
  return sum;
}

// squares [parts, kinds] of the summed gradient, which `divisor` makes the average.
struct GradientParts {
  const double* squares;
  int64_t parts, kinds;
  double divisor;
};

TROUPE_INLINE double norm_of(const GradientParts& gradient, int64_t kind) {
  double square = 0;
  for (int64_t part = 0; part < gradient.parts; part++) square += gradient.squares[part * gradient.kinds + kind];
  return sqrt(square) / gradient.divisor;
}

// PyTorch's clip_grad_norm_; a norm that is not a number has no other factor.
TROUPE_INLINE double clip_factor(double norm, double limit) {
  if (limit == kNoLimit) return 1;
  const double factor = limit / (norm + 1e-6);
  return factor > 1 ? 1 : factor;
}

// to[0]: what the summed gradient is multiplied by to be the clipped average; to[1]: 1 where the step is to be left out.
TROUPE_INLINE void scale_of(const GradientParts& gradient, int64_t kind, double limit, bool leaves_out, double* to) {
  const double whole = norm_of(gradient, 0);
  const bool is_finite = whole - whole == 0;
  to[0] = clip_factor(norm_of(gradient, kind), limit) / gradient.divisor;
  to[1] = leaves_out && !is_finite ? 1 : 0;
}

// The gradient's factor in a step's kernel when it is on the device: `scale` as `scale_of` returns it.
TROUPE_INLINE float scaled_by(float grad_scale, const double* scale) { return static_cast<float>(grad_scale * scale[0]); }

}  // namespace troupe
