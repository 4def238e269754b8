// Dropout whose mask is a pure function of (seed, stream, place): nothing is kept for backward or recomputation. Element i
// stands at place offset + i / run * stride + i mod run, so that a part of a larger tensor draws what it has in the whole.
// Srivastava et al. 2014; scaled by 1 / (1 - p) while training.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <algorithm>
#include <type_traits>

#include "core/differentiable.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/philox.h"
#include "kernels/cuda/kernels.h"
#include "kernels/register.h"

namespace troupe {
namespace {

struct Places {
  int64_t offset;
  int64_t run;
  int64_t stride;
};

struct Mask {
  PhiloxRow row;
  uint64_t offset;
  uint64_t threshold;  // words below it are dropped; p = 1 drops all 2^32
  float scale;
};

template <class Element>
struct Dropout {
  static TROUPE_INLINE void run(const Element* from, Element* to, int64_t begin, int64_t end, Mask mask) {
    // Words are compared as one less, so that the threshold 2^32 fits: w < t is w <= t - 1, and t = 0 drops nothing.
    const bool any = mask.threshold > 0;
    const auto last_dropped = static_cast<uint32_t>(mask.threshold - 1);
    philox_each(mask.row, mask.offset, begin, end, [&](const uint32_t* words, int64_t skip, int64_t index,
                                                               int64_t count) TROUPE_INLINE_LAMBDA {
      for (int64_t j = 0; j < count; j++) {
        const float value = load(from, index + j) * mask.scale;
        store(to, index + j, any & (words[skip + j] <= last_dropped) ? 0.0f : value);
      }
    });
  }
};

at::Tensor apply_mask(const at::Tensor& x, double p, int64_t seed, int64_t stream, Places places) {
  TORCH_CHECK(p >= 0 && p <= 1, "[dropout] p must be a probability, 0 to 1: got ", p);
  TORCH_CHECK(places.offset >= 0 && places.run >= 1 && places.stride >= 0,
              "[dropout] offset and stride must not be negative, run must be at least 1: got ", places.offset, ", ",
              places.stride, ", ", places.run);
  const PhiloxRow row{static_cast<uint64_t>(seed), static_cast<uint64_t>(stream)};
  const auto threshold = static_cast<uint64_t>(p * 0x1p32);
  const float scale = p < 1 ? static_cast<float>(1 / (1 - p)) : 0.0f;
  const at::Tensor from = x.contiguous();
#if HAVE_CUDA
  if (cuda::holds(x)) {
    const cuda::PhiloxPlace place{row.seed, row.stream, static_cast<uint64_t>(places.offset)};
    return cuda::dropout(from, place, places.run, places.stride, threshold, scale);
  }
#endif
  at::Tensor to = at::empty_like(from);
  const bool known = with_float_type(x.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    const auto* source = from.data_ptr<Element>();
    auto* target = to.data_ptr<Element>();
    at::parallel_for(0, from.numel(), kGrainElements, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t first = begin / places.run * places.run;
        const int64_t last = std::min(end, first + places.run);
        const auto offset = static_cast<uint64_t>(places.offset + begin / places.run * places.stride);
        run_best<Dropout<Element>>(source + first, target + first, begin - first, last - first,
                                   Mask{row, offset, threshold, scale});
        begin = last;
      }
    });
  });
  TORCH_CHECK(known, "[dropout] x must be float32, bfloat16 or float16: got ", x.scalar_type());
  return to;
}

at::Tensor dropout(const at::Tensor& x, double p, int64_t seed, int64_t stream, int64_t offset, int64_t run,
                   int64_t stride) {
  return apply_mask(x, p, seed, stream, {offset, run, stride});
}

at::Tensor dropout_autograd(const at::Tensor& x, double p, int64_t seed, int64_t stream, int64_t offset, int64_t run,
                            int64_t stride) {
  const Places places{offset, run, stride};
  const at::Tensor y = without_recording([&] { return apply_mask(x, p, seed, stream, places); });
  record("dropout", {x}, {y}, {}, [=](const Tensors& gradients, const Tensors&) -> Tensors {
    return {apply_mask(gradients[0], p, seed, stream, places)};
  });
  return y;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("dropout(Tensor x, float p, int seed, int stream, int offset, int run, int stride) -> Tensor");
}

TROUPE_KERNELS(m) { m.impl("dropout", dropout); }

TORCH_LIBRARY_IMPL(troupe, Autograd, m) { m.impl("dropout", dropout_autograd); }

}  // namespace troupe
