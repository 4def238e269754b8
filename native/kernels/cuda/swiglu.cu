// silu(gate) * up and its gradients: see kernels/cpu/swiglu.cc.
#include "kernels/cuda/elements.cuh"

namespace troupe::cuda {
namespace {

template <class T>
struct Swiglu {
  const T *gate, *up;
  T* y;

  template <int N>
  __device__ void run(int64_t i) const {
    float g[N], u[N], to[N];
    read<N>(gate + i, g);
    read<N>(up + i, u);
#pragma unroll
    for (int j = 0; j < N; j++) to[j] = g[j] / (1.0f + exp_f32(-g[j])) * u[j];
    write<N>(y + i, to);
  }
};

template <class T>
struct SwigluBackward {
  const T *dy, *gate, *up;
  T *dgate, *dup;

  template <int N>
  __device__ void run(int64_t i) const {
    float d[N], g[N], u[N], to_gate[N], to_up[N];
    read<N>(dy + i, d);
    read<N>(gate + i, g);
    read<N>(up + i, u);
#pragma unroll
    for (int j = 0; j < N; j++) {
      const float s = 1.0f / (1.0f + exp_f32(-g[j]));
      to_gate[j] = d[j] * u[j] * (s + g[j] * s * (1.0f - s));
      to_up[j] = d[j] * g[j] * s;
    }
    write<N>(dgate + i, to_gate);
    write<N>(dup + i, to_up);
  }
};

}  // namespace

void launch_swiglu(Stream stream, Format format, int64_t numel, const void* gate, const void* up, void* y) {
  const bool wide = is_wide(gate, format) && is_wide(up, format) && is_wide(y, format);
  with_format(format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    launch_each("swiglu", stream, numel, wide,
                Swiglu<T>{static_cast<const T*>(gate), static_cast<const T*>(up), static_cast<T*>(y)});
  });
}

void launch_swiglu_backward(Stream stream, Format format, int64_t numel, const void* dy, const void* gate, const void* up,
                            void* dgate, void* dup) {
  const bool wide = is_wide(dy, format) && is_wide(gate, format) && is_wide(up, format) && is_wide(dgate, format) &&
                    is_wide(dup, format);
  with_format(format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    launch_each("swiglu", stream, numel, wide,
                SwigluBackward<T>{static_cast<const T*>(dy), static_cast<const T*>(gate), static_cast<const T*>(up),
                                  static_cast<T*>(dgate), static_cast<T*>(dup)});
  });
}

}  // namespace troupe::cuda
