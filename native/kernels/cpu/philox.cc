// Fills tensors with uniform and normal numbers that depend on (seed, stream, offset + index) only: not on the number of
// threads, the split of the tensor, or the instruction set.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <cmath>
#include <type_traits>

#include "kernels/cpu/elementary.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/philox.h"
#include "kernels/register.h"

namespace troupe {
namespace {

struct Range {
  int64_t begin;
  int64_t end;
};

// 24 random bits: [0, 1) in steps of 2^-24.
TROUPE_INLINE float unit_interval(uint32_t word) { return static_cast<float>(static_cast<int32_t>(word >> 8)) * 0x1p-24f; }

template <class To>
struct Uniform {
  static TROUPE_INLINE void run(To* to, PhiloxRow row, uint64_t offset, Range range, float low, float high) {
    philox_each(row, offset, range.begin, range.end, [&](const uint32_t* words, int64_t skip, int64_t index,
                                                               int64_t count) TROUPE_INLINE_LAMBDA {
      for (int64_t j = 0; j < count; j++) store(to, index + j, low + (high - low) * unit_interval(words[skip + j]));
    });
  }
};

// Box and Muller 1958: two words give two normals.
template <class To>
struct Normal {
  static TROUPE_INLINE void run(To* to, PhiloxRow row, uint64_t offset, Range range, float mean, float std) {
    philox_each(row, offset, range.begin, range.end, [&](const uint32_t* words, int64_t skip, int64_t index,
                                                               int64_t count) TROUPE_INLINE_LAMBDA {
      float normals[kPhiloxWords];
      for (int pair = 0; pair < kPhiloxWords / 2; pair++) {
        const float open = unit_interval(words[2 * pair]) + 0x1p-24f;  // (0, 1]: its logarithm is finite
        const float radius = std::sqrt(-2.0f * log_f32(open));
        float sine, cosine;
        sin_cos_turn(words[2 * pair + 1], sine, cosine);
        normals[2 * pair] = radius * cosine;
        normals[2 * pair + 1] = radius * sine;
      }
      for (int64_t j = 0; j < count; j++) store(to, index + j, mean + std * normals[skip + j]);
    });
  }
};

template <template <class> class Body>
void fill_row(const at::Tensor& to, PhiloxRow row, uint64_t offset, float first, float second) {
  with_float_type(to.scalar_type(), [&](auto* type) {
    using To = std::remove_pointer_t<decltype(type)>;
    To* elements = to.data_ptr<To>();
    at::parallel_for(0, to.numel(), kGrainElements, [&](int64_t begin, int64_t end) {
      run_best<Body<To>>(elements, row, offset, Range{begin, end}, first, second);
    });
  });
}

TROUPE_KERNEL(philox_uniform, fill_row<Uniform>);
TROUPE_KERNEL(philox_normal, fill_row<Normal>);

template <class Fill>
at::Tensor& fill(const Fill& kernel, at::Tensor& self, double first, double second, int64_t seed, int64_t stream,
                 int64_t offset) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()), "[philox] expected self to be floating point, got ", self.scalar_type());
  TORCH_CHECK(offset >= 0, "[philox] expected offset not to be negative, got ", offset);
  const bool direct = self.is_contiguous() && with_float_type(self.scalar_type(), [](auto*) {});
  const at::Tensor to = direct ? self : at::empty(self.sizes(), self.options().dtype(at::kFloat));
  kernel(to, {static_cast<uint64_t>(seed), static_cast<uint64_t>(stream)}, static_cast<uint64_t>(offset),
         static_cast<float>(first), static_cast<float>(second));
  return direct ? self : self.copy_(to);
}

at::Tensor& philox_uniform_(at::Tensor& self, double low, double high, int64_t seed, int64_t stream, int64_t offset) {
  return fill(philox_uniform_kernel, self, low, high, seed, stream, offset);
}

at::Tensor& philox_normal_(at::Tensor& self, double mean, double std, int64_t seed, int64_t stream, int64_t offset) {
  return fill(philox_normal_kernel, self, mean, std, seed, stream, offset);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("philox_uniform_(Tensor(a!) self, float low, float high, int seed, int stream, int offset) -> Tensor(a!)");
  m.def("philox_normal_(Tensor(a!) self, float mean, float std, int seed, int stream, int offset) -> Tensor(a!)");
}

TROUPE_OPERATORS(m) {
  m.impl("philox_uniform_", philox_uniform_);
  m.impl("philox_normal_", philox_normal_);
}

}  // namespace troupe
