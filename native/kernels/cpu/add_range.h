// to[i] (+)= from[i] between float formats; the sum is float32 and rounded once.
#pragma once

#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"

namespace troupe {

template <class To, class From, bool accumulate>
struct AddRange {
  static TROUPE_INLINE void run(To* __restrict to, const From* __restrict from, int64_t numel) {
    for (int64_t i = 0; i < numel; i++) store(to, i, (accumulate ? load(to, i) : 0.0f) + load(from, i));
  }
};

template <class To, class From>
void add_range(To* to, const From* from, int64_t numel, bool accumulate) {
  if (accumulate) {
    run_best<AddRange<To, From, true>>(to, from, numel);
  } else {
    run_best<AddRange<To, From, false>>(to, from, numel);
  }
}

}  // namespace troupe
