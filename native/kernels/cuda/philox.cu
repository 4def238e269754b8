// Uniform and normal numbers: see kernels/cpu/philox.cc.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/philox.cuh"

namespace troupe::cuda {
namespace {

__device__ __forceinline__ float unit_interval(uint32_t word) {
  return static_cast<float>(static_cast<int32_t>(word >> 8)) * 0x1p-24f;
}

struct Uniform {
  Array to;
  PhiloxPlace place;
  float low, high;

  template <int N>
  __device__ void run(int64_t i) const {
    uint32_t words[N];
    float value[N];
    philox_words<N>(place, place.offset + i, words);
#pragma unroll
    for (int j = 0; j < N; j++) value[j] = low + (high - low) * unit_interval(words[j]);
    write<N>(to, i, value);
  }
};

// Two words give two normals: the even place has the cosine, the odd one the sine.
struct Normal {
  Array to;
  PhiloxPlace place;
  float mean, std;

  template <int N>
  __device__ void run(int64_t i) const {
    float value[N];
    const uint64_t first = place.offset + i;
    if (N == kWide && first % 4 == 0) {
      uint32_t words[4];
      philox(place, first / 4, words);
      float of_two[2];
      pair(words[0], words[1], of_two);
      value[0] = of_two[0];
      value[N > 1 ? 1 : 0] = of_two[N > 1 ? 1 : 0];
      pair(words[2], words[3], of_two);
      value[N > 2 ? 2 : 0] = of_two[0];
      value[N > 3 ? 3 : 0] = of_two[N > 3 ? 1 : 0];
    } else {
#pragma unroll
      for (int j = 0; j < N; j++) {
        uint32_t words[4];
        float of_two[2];
        philox(place, (first + j) / 4, words);
        const bool second = (first + j) % 4 >= 2;
        pair(second ? words[2] : words[0], second ? words[3] : words[1], of_two);
        value[j] = (first + j) % 2 == 0 ? of_two[0] : of_two[1];
      }
    }
    write<N>(to, i, value);
  }

 private:
  __device__ void pair(uint32_t even, uint32_t odd, float (&of_two)[2]) const {
    const float open = unit_interval(even) + 0x1p-24f;
    const float radius = sqrtf(-2.0f * log_f32(open));
    float sine, cosine;
    sin_cos_turn(odd, sine, cosine);
    of_two[0] = mean + std * (radius * cosine);
    of_two[1] = mean + std * (radius * sine);
  }
};

}  // namespace

void launch_philox_uniform(Stream stream, Array to, int64_t numel, PhiloxPlace place, float low, float high) {
  launch_each("philox_uniform_", stream, numel, is_wide(to), Uniform{to, place, low, high});
}

void launch_philox_normal(Stream stream, Array to, int64_t numel, PhiloxPlace place, float mean, float std) {
  launch_each("philox_normal_", stream, numel, is_wide(to), Normal{to, place, mean, std});
}

}  // namespace troupe::cuda
