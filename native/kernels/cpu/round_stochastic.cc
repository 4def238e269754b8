// Rounds float32 to bfloat16 or float16, up or down by chance, so that the mean over many roundings is the value: what is
// less than half a unit in the last place is not lost for ever, as it is by rounding to nearest. The chance of element i is
// word `offset` + i of the Philox stream (seed, stream): the same for every split, thread count and instruction set.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <type_traits>

#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/philox.h"
#include "kernels/register.h"

namespace troupe {
namespace {

TROUPE_INLINE void store_by_chance(c10::BFloat16* to, int64_t index, float value, uint32_t word) {
  to[index].x = bfloat16_by_chance(value, word);
}
TROUPE_INLINE void store_by_chance(c10::Half* to, int64_t index, float value, uint32_t word) {
  to[index].x = float16_by_chance(value, word);
}

template <class To>
struct RoundByChance {
  static TROUPE_INLINE void run(To* __restrict to, const float* __restrict from, PhiloxRow row, uint64_t offset,
                                int64_t begin, int64_t end) {
    philox_each(row, offset, begin, end, [&](const uint32_t* words, int64_t skip, int64_t index,
                                             int64_t count) TROUPE_INLINE_LAMBDA {
      for (int64_t j = 0; j < count; j++) store_by_chance(to, index + j, from[index + j], words[skip + j]);
    });
  }
};

template <class To>
void launch(const at::Tensor& out, const at::Tensor& values, PhiloxRow row, uint64_t offset) {
  To* to = out.data_ptr<To>();
  const float* from = values.data_ptr<float>();
  at::parallel_for(0, out.numel(), kGrainElements, [&](int64_t begin, int64_t end) {
    run_best<RoundByChance<To>>(to, from, row, offset, begin, end);
  });
}

void round_by_chance(const at::Tensor& out, const at::Tensor& values, PhiloxRow row, uint64_t offset) {
  if (out.scalar_type() == at::kHalf) return launch<at::Half>(out, values, row, offset);
  launch<at::BFloat16>(out, values, row, offset);
}

TROUPE_KERNEL(round_stochastic, round_by_chance);

void round_stochastic_(at::Tensor out, const at::Tensor& values, int64_t seed, int64_t stream, int64_t offset) {
  TORCH_CHECK(values.scalar_type() == at::kFloat && values.is_contiguous() && out.is_contiguous() &&
                  values.numel() == out.numel(),
              "[round_stochastic_] expected values to be contiguous float32, of as many elements as out, got ",
              values.scalar_type(), " ", values.sizes(), " for ", out.sizes());
  TORCH_CHECK(offset >= 0, "[round_stochastic_] expected offset not to be negative, got ", offset);
  TORCH_CHECK(out.scalar_type() == at::kBFloat16 || out.scalar_type() == at::kHalf,
              "[round_stochastic_] expected out to be bfloat16 or float16, got ", out.scalar_type());
  round_stochastic_kernel(out, values, {static_cast<uint64_t>(seed), static_cast<uint64_t>(stream)},
                          static_cast<uint64_t>(offset));
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("round_stochastic_(Tensor(a!) out, Tensor values, int seed, int stream, int offset) -> ()");
}

TROUPE_OPERATORS(m) { m.impl("round_stochastic_", round_stochastic_); }

}  // namespace troupe
