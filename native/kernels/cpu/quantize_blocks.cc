// The block formats of GGUF files, in the published form of ggml's reference code (https://github.com/ggml-org/ggml): float32 in the
// order of its C code, nothing contracted, so that the bits are its own. The eight blocks of a super-block are the lanes of each loop:
// a lane's sums keep their order. For the CPU alone, where files are written.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/util/Half.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/isa.h"

namespace troupe {
namespace {

constexpr int64_t kBlockSize = 32;
constexpr int64_t kBlocks = 8;  // of a super-block
constexpr int64_t kSuperSize = kBlockSize * kBlocks;
constexpr int64_t kBytesOf8Bits = 2 + kBlockSize;
constexpr int64_t kBytesOf4Bits = 2 + 2 + 12 + kSuperSize / 2;

using Lanes = float[kBlocks];
using LanesOfBlock = float[kBlockSize][kBlocks];

// Rounds halves to even numbers: adding 1.5 · 2²³ leaves float32 no bits behind the point.
TROUPE_INLINE float nearest_whole(float value) { return (value + 12582912.0f) - 12582912.0f; }

TROUPE_INLINE float level_of_4_bits(float value) { return value > 0.0f ? (value < 15.0f ? value : 15.0f) : 0.0f; }

TROUPE_INLINE float put_half(uint8_t* to, float value) {
  const c10::Half half(value);
  std::memcpy(to, &half.x, 2);
  return static_cast<float>(half);
}

// A block of 32 values: a scale in float16, and 8 bits a value.
void quantize_8_bits(const float* values, uint8_t* to) {
  float largest = 0.0f;
  for (int64_t i = 0; i < kBlockSize; i++) largest = std::max(largest, std::fabs(values[i]));
  const float scale = largest / 127.0f;
  const float inverse = scale == 0.0f ? 0.0f : 1.0f / scale;
  put_half(to, scale);
  for (int64_t i = 0; i < kBlockSize; i++)
    to[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(std::round(values[i] * inverse)));
}

// The levels of eight blocks, each a scale · level − minimum.
struct FittedBlocks {
  LanesOfBlock levels;
  Lanes scales;
  Lanes minima;
};

TROUPE_INLINE void round_blocks(const LanesOfBlock& values, const Lanes& inverse, const Lanes& least, LanesOfBlock& levels) {
  for (int64_t i = 0; i < kBlockSize; i++)
    for (int64_t b = 0; b < kBlocks; b++) levels[i][b] = level_of_4_bits(nearest_whole(inverse[b] * (values[i][b] - least[b])));
}

TROUPE_INLINE void errors_of(const LanesOfBlock& values, const LanesOfBlock& weights, const LanesOfBlock& levels,
                             const Lanes& scale, const Lanes& least, Lanes& errors) {
  for (int64_t b = 0; b < kBlocks; b++) errors[b] = 0.0f;
  for (int64_t i = 0; i < kBlockSize; i++) {
    for (int64_t b = 0; b < kBlocks; b++) {
      const float difference = scale[b] * levels[i][b] + least[b] - values[i][b];
      errors[b] += weights[i][b] * (difference * difference);
    }
  }
}

// The best scale and minimum of each block by weighted least squares, over 21 steps around its range / 15.
struct FitBlocks {
  static TROUPE_INLINE void run(const float* super_block, FittedBlocks* fitted) {
    LanesOfBlock values, weights, tried;
    for (int64_t i = 0; i < kBlockSize; i++)
      for (int64_t b = 0; b < kBlocks; b++) values[i][b] = super_block[b * kBlockSize + i];
    Lanes average, least, most, sum_of_weights, sum_of_values, inverse, scale, minimum, error, tried_error, tried_scale, tried_minimum;
    for (int64_t b = 0; b < kBlocks; b++) average[b] = sum_of_weights[b] = sum_of_values[b] = 0.0f;
    for (int64_t b = 0; b < kBlocks; b++) least[b] = most[b] = values[0][b];
    for (int64_t i = 0; i < kBlockSize; i++)
      for (int64_t b = 0; b < kBlocks; b++) average[b] += values[i][b] * values[i][b];
    for (int64_t b = 0; b < kBlocks; b++) average[b] = std::sqrt(average[b] / 32.0f);
    for (int64_t i = 0; i < kBlockSize; i++) {
      for (int64_t b = 0; b < kBlocks; b++) {
        const float value = values[i][b];
        const float weight = average[b] + std::fabs(value);
        weights[i][b] = weight;
        least[b] = value < least[b] ? value : least[b];
        most[b] = value > most[b] ? value : most[b];
        sum_of_weights[b] += weight;
        sum_of_values[b] += weight * value;
      }
    }
    for (int64_t b = 0; b < kBlocks; b++) {
      least[b] = least[b] < 0.0f ? least[b] : 0.0f;
      inverse[b] = 15.0f / (most[b] - least[b]);  // infinite for a block of one number, which is put right at the end
      scale[b] = 1.0f / inverse[b];
      minimum[b] = least[b];
    }
    round_blocks(values, inverse, minimum, tried);
    for (int64_t i = 0; i < kBlockSize; i++)
      for (int64_t b = 0; b < kBlocks; b++) fitted->levels[i][b] = tried[i][b];
    errors_of(values, weights, tried, scale, minimum, error);
    for (int step = 0; step <= 20; step++) {
      const float num_levels = -1.0f + 0.1f * static_cast<float>(step) + 15.0f;
      // The range begins at the best minimum so far.
      for (int64_t b = 0; b < kBlocks; b++) inverse[b] = num_levels / (most[b] - minimum[b]);
      round_blocks(values, inverse, minimum, tried);
      Lanes levels, squared, mixed;
      for (int64_t b = 0; b < kBlocks; b++) levels[b] = squared[b] = mixed[b] = 0.0f;
      for (int64_t i = 0; i < kBlockSize; i++) {
        for (int64_t b = 0; b < kBlocks; b++) {
          const float weighted = weights[i][b] * tried[i][b];
          levels[b] += weighted;
          squared[b] += weighted * tried[i][b];
          mixed[b] += weighted * values[i][b];
        }
      }
      Lanes determinant;
      for (int64_t b = 0; b < kBlocks; b++) {
        determinant[b] = sum_of_weights[b] * squared[b] - levels[b] * levels[b];
        const float slope = sum_of_weights[b] * mixed[b] - sum_of_values[b] * levels[b];
        const float offset = squared[b] * sum_of_values[b] - levels[b] * mixed[b];
        const float shift = offset / determinant[b];
        tried_scale[b] = shift > 0.0f ? mixed[b] / squared[b] : slope / determinant[b];
        tried_minimum[b] = shift > 0.0f ? 0.0f : shift;
      }
      errors_of(values, weights, tried, tried_scale, tried_minimum, tried_error);
      bool is_better[kBlocks];
      for (int64_t b = 0; b < kBlocks; b++) is_better[b] = determinant[b] > 0.0f && !(tried_error[b] >= error[b]);
      for (int64_t b = 0; b < kBlocks; b++) {
        error[b] = is_better[b] ? tried_error[b] : error[b];
        scale[b] = is_better[b] ? tried_scale[b] : scale[b];
        minimum[b] = is_better[b] ? tried_minimum[b] : minimum[b];
      }
      for (int64_t i = 0; i < kBlockSize; i++)
        for (int64_t b = 0; b < kBlocks; b++) fitted->levels[i][b] = is_better[b] ? tried[i][b] : fitted->levels[i][b];
    }
    for (int64_t b = 0; b < kBlocks; b++) {
      const bool is_one_number = most[b] == least[b];
      fitted->scales[b] = is_one_number ? 0.0f : scale[b];
      fitted->minima[b] = is_one_number ? -least[b] : -minimum[b];
      if (!is_one_number) continue;
      for (int64_t i = 0; i < kBlockSize; i++) fitted->levels[i][b] = 0.0f;
    }
  }
};

// Scales of 6 bits, as whole numbers, and the float32 of the float16 that they are multiples of.
float put_steps(const Lanes& of, uint8_t* steps, uint8_t* to) {
  const float largest = std::max(0.0f, *std::max_element(of, of + kBlocks));
  const float inverse = largest > 0.0f ? 63.0f / largest : 0.0f;
  for (int64_t b = 0; b < kBlocks; b++)
    steps[b] = static_cast<uint8_t>(static_cast<int>(std::min(63.0f, nearest_whole(inverse * of[b]))));
  return put_half(to, largest / 63.0f);
}

// A super-block of 256 values: a scale and a minimum in float16, of which each block's have 6 bits, and 4 bits a value.
void quantize_4_bits(const float* values, uint8_t* to) {
  FittedBlocks fitted;
  run_best<FitBlocks>(values, &fitted);
  uint8_t scales[kBlocks], minima[kBlocks];
  const float scale_of_super = put_steps(fitted.scales, scales, to);
  const float minimum_of_super = put_steps(fitted.minima, minima, to + 2);
  // The upper two bits of the last four lie above the first four.
  for (int64_t b = 0; b < 4; b++) {
    to[4 + b] = static_cast<uint8_t>(scales[b] | (scales[b + 4] >> 4) << 6);
    to[8 + b] = static_cast<uint8_t>(minima[b] | (minima[b + 4] >> 4) << 6);
    to[12 + b] = static_cast<uint8_t>((scales[b + 4] & 15) | (minima[b + 4] & 15) << 4);
  }
  uint8_t levels[kSuperSize];
  for (int64_t b = 0; b < kBlocks; b++) {
    const float scale = scale_of_super * scales[b], minimum = minimum_of_super * minima[b];
    for (int64_t i = 0; i < kBlockSize; i++) {
      const float level = level_of_4_bits(nearest_whole((values[b * kBlockSize + i] + minimum) / scale));
      levels[b * kBlockSize + i] = static_cast<uint8_t>(scale == 0.0f ? fitted.levels[i][b] : level);
    }
  }
  for (int64_t pair = 0; pair < kBlocks / 2; pair++) {
    const uint8_t* low = levels + pair * 2 * kBlockSize;
    for (int64_t i = 0; i < kBlockSize; i++)
      to[16 + pair * kBlockSize + i] = static_cast<uint8_t>(low[i] | low[kBlockSize + i] << 4);
  }
}

template <int64_t size, int64_t num_bytes, class Quantize>
at::Tensor quantized(const char* name, const at::Tensor& values, Quantize quantize) {
  TORCH_CHECK(values.scalar_type() == at::kFloat && values.is_contiguous() && values.numel() % size == 0, "[", name,
              "] expected values to be contiguous float32, a multiple of ", size, ", got ", values.scalar_type(), " ",
              values.sizes());
  const int64_t num_blocks = values.numel() / size;
  at::Tensor bytes = at::empty({num_blocks * num_bytes}, values.options().dtype(at::kByte));
  const float* from = values.data_ptr<float>();
  auto* to = bytes.data_ptr<uint8_t>();
  at::parallel_for(0, num_blocks, std::max<int64_t>(1, 1024 / size), [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; block++) quantize(from + block * size, to + block * num_bytes);
  });
  return bytes;
}

at::Tensor quantize_q8_0(const at::Tensor& values) {
  return quantized<kBlockSize, kBytesOf8Bits>("quantize_q8_0", values, quantize_8_bits);
}

at::Tensor quantize_q4_k(const at::Tensor& values) {
  return quantized<kSuperSize, kBytesOf4Bits>("quantize_q4_k", values, quantize_4_bits);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("quantize_q8_0(Tensor values) -> Tensor");
  m.def("quantize_q4_k(Tensor values) -> Tensor");
}

TORCH_LIBRARY_IMPL(troupe, CPU, m) {
  m.impl("quantize_q8_0", quantize_q8_0);
  m.impl("quantize_q4_k", quantize_q4_k);
}

}  // namespace troupe
