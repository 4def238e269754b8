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
#include "kernels/cuda/kernels.h"
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
#if HAVE_CUDA
  static constexpr auto on_cuda = cuda::philox_uniform;
#endif
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
#if HAVE_CUDA
  static constexpr auto on_cuda = cuda::philox_normal;
#endif
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
at::Tensor& fill(at::Tensor& self, float first, float second, int64_t seed, int64_t stream, int64_t offset) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()), "[philox] expected self to be floating point, got ", self.scalar_type());
  TORCH_CHECK(offset >= 0, "[philox] expected offset not to be negative, got ", offset);
  const PhiloxRow row{static_cast<uint64_t>(seed), static_cast<uint64_t>(stream)};
  const bool direct = self.is_contiguous() && with_float_type(self.scalar_type(), [&](auto* type) {
    using To = std::remove_pointer_t<decltype(type)>;
    To* to = self.data_ptr<To>();
#if HAVE_CUDA
    if (cuda::holds(self)) {
      Body<To>::on_cuda(self, {row.seed, row.stream, static_cast<uint64_t>(offset)}, first, second);
      return;
    }
#endif
    at::parallel_for(0, self.numel(), kGrainElements, [&](int64_t begin, int64_t end) {
      run_best<Body<To>>(to, row, static_cast<uint64_t>(offset), Range{begin, end}, first, second);
    });
  });
  if (direct) return self;
  at::Tensor values = at::empty(self.sizes(), self.options().dtype(at::kFloat));
  return self.copy_(fill<Body>(values, first, second, seed, stream, offset));
}

at::Tensor& philox_uniform_(at::Tensor& self, double low, double high, int64_t seed, int64_t stream, int64_t offset) {
  return fill<Uniform>(self, static_cast<float>(low), static_cast<float>(high), seed, stream, offset);
}

at::Tensor& philox_normal_(at::Tensor& self, double mean, double std, int64_t seed, int64_t stream, int64_t offset) {
  return fill<Normal>(self, static_cast<float>(mean), static_cast<float>(std), seed, stream, offset);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("philox_uniform_(Tensor(a!) self, float low, float high, int seed, int stream, int offset) -> Tensor(a!)");
  m.def("philox_normal_(Tensor(a!) self, float mean, float std, int seed, int stream, int offset) -> Tensor(a!)");
}

TROUPE_KERNELS(m) {
  m.impl("philox_uniform_", philox_uniform_);
  m.impl("philox_normal_", philox_normal_);
}

}  // namespace troupe
