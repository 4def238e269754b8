// How a kernel is called for tensors: their device made current, its stream, their formats.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#if !TROUPE_CUDA_ON_HOST
#include <c10/cuda/CUDAStream.h>
#endif

#include "kernels/cuda/launch.h"

namespace troupe::cuda {

// The device of a tensor is the current one while this lives.
class Call {
 public:
#if TROUPE_CUDA_ON_HOST
  explicit Call(const at::Tensor& tensor) : guard_(tensor.device()), stream_(nullptr) {}
#else
  explicit Call(const at::Tensor& tensor)
      : guard_(tensor.device()), stream_(c10::cuda::getCurrentCUDAStream(tensor.device().index()).stream()) {}
#endif

  Stream stream() const { return stream_; }

 private:
  const c10::DeviceGuard guard_;
  const Stream stream_;
};

inline Format format_of(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Float: return Format::float32;
    case c10::ScalarType::BFloat16: return Format::bfloat16;
    case c10::ScalarType::Half: return Format::float16;
    default: TORCH_CHECK(false, "[cuda] expected float32, bfloat16 or float16, got ", dtype);
  }
}

inline Format format_of(const at::Tensor& tensor) { return format_of(tensor.scalar_type()); }
inline Array array_of(const at::Tensor& tensor) { return {tensor.data_ptr(), format_of(tensor)}; }

inline Array array_or_none(const at::Tensor& tensor) { return tensor.defined() ? array_of(tensor) : Array{}; }

// The rows of a tensor are its last dim.
inline Rows rows_of(const at::Tensor& x) {
  const int64_t dim = x.size(-1);
  return {dim == 0 ? 0 : x.numel() / dim, dim};
}

inline at::Tensor as_float(const at::Tensor& tensor) { return tensor.to(at::kFloat).contiguous(); }
inline float* floats(const at::Tensor& tensor) { return tensor.defined() ? tensor.data_ptr<float>() : nullptr; }
inline void* data_of(const at::Tensor& tensor) { return tensor.defined() ? tensor.data_ptr() : nullptr; }

}  // namespace troupe::cuda
