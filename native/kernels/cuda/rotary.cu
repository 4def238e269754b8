// Rotary position embedding: see kernels/cpu/rotary.cc. One thread for each pair of features; the features after them are copied.
#include "kernels/cuda/elements.cuh"

namespace troupe::cuda {
namespace {

template <class T>
struct Rotary {
  const T* x;
  const float *cosines, *sines;
  float sign;
  T* y;
  RotaryShape shape;

  // Item `index` of batches * time * heads * (half + unrotated dims), in the order of y.
  template <int N>
  __device__ void run(int64_t index) const {
    static_assert(N == 1 || N == kWide);
#pragma unroll
    for (int j = 0; j < N; j++) one(index + j);
  }

 private:
  __device__ void one(int64_t index) const {
    const int64_t places = shape.width - shape.half;
    const auto i = static_cast<int32_t>(index % places);
    const int64_t row = index / places;
    const int64_t head = row % shape.heads, t = row / shape.heads % shape.time, batch = row / shape.heads / shape.time;
    const T* from = x + batch * shape.of_batch + head * shape.of_head + t * shape.of_time;
    T* to = y + row * shape.width;
    if (i >= shape.half) {
      to[i + shape.half] = from[i + shape.half];
      return;
    }
    const float first = load(from[i]), second = load(from[i + shape.half]);
    const float cosine = cosines[t * shape.half + i], sine = sign * sines[t * shape.half + i];
    store(to[i], first * cosine - second * sine);
    store(to[i + shape.half], second * cosine + first * sine);
  }
};

}  // namespace

void launch_rotary(Stream stream, Format format, const RotaryShape& shape, const void* x, const float* cosines,
                   const float* sines, float sign, void* y) {
  const int64_t numel = shape.batches * shape.time * shape.heads * (shape.width - shape.half);
  with_format(format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    launch_each("rotary", stream, numel, false,
                Rotary<T>{static_cast<const T*>(x), cosines, sines, sign, static_cast<T*>(y), shape});
  });
}

}  // namespace troupe::cuda
