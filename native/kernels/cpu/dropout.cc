// Dropout whose mask is a pure function of (seed, stream, place): nothing is kept for backward or recomputation. Element i
// stands at place offset + i / run * stride + i mod run, so that a part of a larger tensor has the mask that it has in the complete one.
// Srivastava et al. 2014; scaled by 1 / (1 - p) while training.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <algorithm>
#include <type_traits>

#include "core/autograd/differentiable.h"
#include "core/programs/tile_products.h"
#include "kernels/cpu/dropout_mask.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/register.h"

namespace troupe {
namespace {

template <class Element>
struct Dropout {
  static TROUPE_INLINE void run(const Element* from, Element* to, int64_t begin, int64_t end, DropoutMask mask) {
    each_dropped(mask, begin, end, [&](int64_t i, bool dropped) TROUPE_INLINE_LAMBDA {
      const float value = load(from, i) * mask.scale;
      store(to, i, dropped ? 0.0f : value);
    });
  }
};

at::Tensor drop(const at::Tensor& from, const DropoutMask& mask, const DropoutPlaces& places) {
  at::Tensor to = at::empty_like(from);
  const bool known = with_float_type(from.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    const auto* source = from.data_ptr<Element>();
    auto* target = to.data_ptr<Element>();
    at::parallel_for(0, from.numel(), kGrainElements, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t first = begin / places.run * places.run;
        const int64_t last = std::min(end, first + places.run);
        run_best<Dropout<Element>>(source + first, target + first, begin - first, last - first, mask.at(places.of(first)));
        begin = last;
      }
    });
  });
  TORCH_CHECK(known, "[dropout] expected x to be float32, bfloat16 or float16, got ", from.scalar_type());
  return to;
}

TROUPE_KERNEL(dropout, drop);

at::Tensor apply_mask(const at::Tensor& x, double p, int64_t seed, int64_t stream, DropoutPlaces places) {
  check_dropout("dropout", p, places);
  return dropout_kernel(x.contiguous(), DropoutMask::of(p, seed, stream), places);
}

at::Tensor dropout(const at::Tensor& x, double p, int64_t seed, int64_t stream, int64_t offset, int64_t run,
                   int64_t stride) {
  const DropoutPlaces places{offset, run, stride};
  const at::Tensor y = without_recording([&] { return apply_mask(x, p, seed, stream, places); });
  record("dropout", {x}, {y}, {}, [=](const Tensors& gradients, const Tensors&) -> Tensors {
    return {apply_mask(gradients[0], p, seed, stream, places)};
  });
  return y;
}

}  // namespace

Backward dropout_backward_of(const TileDropout& dropout) {
  return [dropout](const Tensors& gradients, const Tensors&) -> Tensors {
    const int64_t numel = gradients[0].numel();
    return {apply_mask(gradients[0], dropout.p, dropout.seed, dropout.stream, {dropout.offset, numel, numel})};
  };
}

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("dropout(Tensor x, float p, int seed, int stream, int offset, int run, int stride) -> Tensor");
}

TROUPE_DIFFERENTIABLE_OPERATORS(m) { m.impl("dropout", dropout); }

}  // namespace troupe
