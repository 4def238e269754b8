// Rotary position embedding in its half-split form, and its gradient, which is the rotation by the opposite angles. Su et
// al. 2021, https://arxiv.org/abs/2104.09864. x_BHTK; cosines and sines [T, R/2], float32, R <= K: feature i < R/2 is
// rotated with feature i + R/2; features from R on are copied.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <type_traits>

#include "core/autograd/differentiable.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"
#include "kernels/register.h"

namespace troupe {
namespace {

template <class Element>
struct Rotary {
  static TROUPE_INLINE void run(const Element* x, Element* __restrict y, const float* cosines, const float* sines,
                                float sign, int64_t half, int64_t width) {
    for (int64_t i = 0; i < half; i++) {
      const float first = load(x, i), second = load(x, i + half), sine = sign * sines[i];
      store(y, i, first * cosines[i] - second * sine);
      store(y, i + half, second * cosines[i] + first * sine);
    }
    for (int64_t i = 2 * half; i < width; i++) y[i] = x[i];
  }
};

void check_rotary(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines) {
  TORCH_CHECK(x.dim() == 4 && cosines.dim() == 2 && cosines.sizes() == sines.sizes() && cosines.size(0) == x.size(2) &&
                  2 * cosines.size(1) <= x.size(3),
              "[rotary] expected x to be [batch, heads, time, width], cosines and sines [time, at most width / 2], got ", x.sizes(),
              ", ", cosines.sizes(), " and ", sines.sizes());
  TORCH_CHECK(cosines.scalar_type() == at::kFloat && sines.scalar_type() == at::kFloat,
              "[rotary] expected cosines and sines to be float32, got ", cosines.scalar_type(), " and ", sines.scalar_type());
  TORCH_CHECK(with_float_type(x.scalar_type(), [](auto*) {}), "[rotary] expected x to be float32, bfloat16 or float16, got ",
              x.scalar_type());
}

// Laid out as [B,T,H,K], the way projections are, and seen as [B,H,T,K].
at::Tensor rotate_rows(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines, float sign) {
  const int64_t batches = x.size(0), heads = x.size(1), time = x.size(2), width = x.size(3), half = cosines.size(1);
  at::Tensor y_BTHK = at::empty({batches, time, heads, width}, x.options());
  const auto *cosine_TR = cosines.data_ptr<float>(), *sine_TR = sines.data_ptr<float>();
  const int64_t of_batch = x.stride(0), of_head = x.stride(1), of_time = x.stride(2);
  with_float_type(x.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    const auto* from = x.data_ptr<Element>();
    auto* to = y_BTHK.data_ptr<Element>();
    at::parallel_for(0, batches * time, grain_rows(heads * width), [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; row++) {
        const int64_t t = row % time;
        const auto* x_HK = from + row / time * of_batch + t * of_time;
        for (int64_t head = 0; head < heads; head++) {
          run_best<Rotary<Element>>(x_HK + head * of_head, to + (row * heads + head) * width, cosine_TR + t * half,
                                    sine_TR + t * half, sign, half, width);
        }
      }
    });
  });
  return y_BTHK.transpose(1, 2);
}

TROUPE_KERNEL(rotary, rotate_rows);

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines, float sign) {
  return rotary_kernel(x.stride(3) == 1 ? x : x.contiguous(), cosines, sines, sign);
}

at::Tensor rotary(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines) {
  check_rotary(x, cosines, sines);
  const at::Tensor cosine_TR = cosines.contiguous(), sine_TR = sines.contiguous();
  const at::Tensor y = without_recording([&] { return rotate(x, cosine_TR, sine_TR, 1.0f); });
  record("rotary", {x}, {y}, {cosine_TR, sine_TR}, [](const Tensors& gradients, const Tensors& saved) -> Tensors {
    return {rotate(gradients[0], saved[0], saved[1], -1.0f)};
  });
  return y;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) { m.def("rotary(Tensor x, Tensor cosines, Tensor sines) -> Tensor"); }

TROUPE_DIFFERENTIABLE_OPERATORS(m) { m.impl("rotary", rotary); }

}  // namespace troupe
