// Dropout with the CPU's mask: see kernels/cpu/dropout.cc.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/philox.cuh"

namespace troupe::cuda {
namespace {

template <class T>
struct Dropout {
  const T* x;
  T* y;
  PhiloxPlace place;
  int64_t run_length, stride;
  uint64_t threshold;
  float scale;

  template <int N>
  __device__ void run(int64_t i) const {
    float value[N];
    uint32_t words[N];
    read<N>(x + i, value);
    draw(i, words);
#pragma unroll
    for (int j = 0; j < N; j++) value[j] = words[j] < threshold ? 0.0f : value[j] * scale;
    write<N>(y + i, value);
  }

 private:
  __device__ uint64_t place_of(int64_t i) const {
    return place.offset + static_cast<uint64_t>(i / run_length * stride + i % run_length);
  }
  template <int N>
  __device__ void draw(int64_t i, uint32_t (&words)[N]) const {
    if (i % run_length + N <= run_length) return philox_words<N>(place, place_of(i), words);
#pragma unroll
    for (int j = 0; j < N; j++) words[j] = philox_word(place, place_of(i + j));
  }
};

}  // namespace

void launch_dropout(Stream stream, Format format, int64_t numel, const void* x, PhiloxPlace place, int64_t run,
                    int64_t stride, uint64_t threshold, float scale, void* y) {
  const bool wide = is_wide(x, format) && is_wide(y, format);
  with_format(format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    launch_each("dropout", stream, numel, wide,
                Dropout<T>{static_cast<const T*>(x), static_cast<T*>(y), place, run, stride, threshold, scale});
  });
}

}  // namespace troupe::cuda
