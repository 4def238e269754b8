// One pass over a flat stretch of parameters, its states and its gradient: see kernels/cpu/flat_step.h.
//
// A body has `Coefficients`, the number of states `kStates`, whether the gradient is read, and
//   static void step(float& param, float (&states)[kStates], float grad, const Coefficients& c)
// which writes what it changes.
#pragma once

#include <algorithm>

#include "kernels/cuda/formats.cuh"

namespace troupe::cuda {

constexpr int kSegments = 32;  // of one launch: they are its arguments
constexpr int kStepThreads = 256;

template <class Body>
struct StepArguments {
  float* param;
  float* states[3];
  Array grad, low_precision;
  const double* scale;
  bool wide;
  int64_t begin, end;
  int num_segments;
  int64_t ends[kSegments];
  typename Body::Coefficients coefficients[kSegments];
};

template <class Body>
__device__ __forceinline__ typename Body::Coefficients coefficients_at(const StepArguments<Body>& a, int segment) {
  typename Body::Coefficients c = a.coefficients[segment];
  if constexpr (has_grad_scale<typename Body::Coefficients>) {
    if (a.scale != nullptr) c.grad_scale = scaled_by(c.grad_scale, a.scale);
  }
  return c;
}

template <class Body, int N>
__device__ __forceinline__ void step_elements(const StepArguments<Body>& a, int64_t i,
                                              const typename Body::Coefficients& c) {
  float param[N], grad[N] = {}, states[Body::kStates + 1][N];
  read<N>(a.param + i, param);
  if constexpr (Body::kReadsGrad) read<N>(a.grad, i, grad);
#pragma unroll
  for (int s = 0; s < Body::kStates; s++) read<N>(a.states[s] + i, states[s]);
#pragma unroll
  for (int j = 0; j < N; j++) {
    float of_element[Body::kStates + 1];
#pragma unroll
    for (int s = 0; s < Body::kStates; s++) of_element[s] = states[s][j];
    Body::step(param[j], of_element, grad[j], c);
#pragma unroll
    for (int s = 0; s < Body::kStates; s++) states[s][j] = of_element[s];
  }
  if constexpr (Body::kWritesParam) write<N>(a.param + i, param);
#pragma unroll
  for (int s = 0; s < Body::kStates; s++) write<N>(a.states[s] + i, states[s]);
  if (a.low_precision.data != nullptr) write<N>(a.low_precision, i, param);
}

template <class Body>
__device__ __forceinline__ int segment_of(const StepArguments<Body>& a, int64_t index) {
  int first = 0, last = a.num_segments - 1;
  while (first < last) {
    const int middle = (first + last) / 2;
    if (a.ends[middle] > index) {
      last = middle;
    } else {
      first = middle + 1;
    }
  }
  return first;
}

template <class Body>
__global__ void __launch_bounds__(kStepThreads) step_kernel(const __grid_constant__ StepArguments<Body> a) {
  if (a.scale != nullptr && a.scale[1] != 0) return;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x * kWide;
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t i = (a.begin / kWide + thread) * kWide; i < a.end; i += stride) {
    const int segment = segment_of(a, max(i, a.begin));
    if (a.wide && i >= a.begin && i + kWide <= a.ends[segment]) {
      step_elements<Body, kWide>(a, i, coefficients_at(a, segment));
      continue;
    }
    for (int64_t at = max(i, a.begin); at < min(i + kWide, a.end); at++) {
      step_elements<Body, 1>(a, at, coefficients_at(a, segment_of(a, at)));
    }
  }
}

template <class Body>
void launch_flat_step(const char* name, Stream stream, const StepOf& step, const typename Body::Coefficients* of_segments) {
  StepArguments<Body> a;
  a.param = step.param;
  a.wide = is_wide(step.param, Format::float32) && is_wide(step.grad) && is_wide(step.low_precision);
  for (int s = 0; s < 3; s++) {
    a.states[s] = step.states[s];
    a.wide = a.wide && is_wide(step.states[s], Format::float32);
  }
  a.grad = step.grad;
  a.low_precision = step.low_precision;
  a.scale = step.scale;
  a.begin = 0;
  for (int64_t first = 0; first < step.segments; first += kSegments) {
    a.num_segments = static_cast<int>(std::min<int64_t>(kSegments, step.segments - first));
    for (int s = 0; s < a.num_segments; s++) {
      a.ends[s] = step.ends[first + s];
      a.coefficients[s] = of_segments[first + s];
    }
    a.end = a.ends[a.num_segments - 1];
    if (a.end > a.begin) {
      const int64_t threads = (a.end - a.begin + kWide - 1) / kWide + 1;
      const int64_t blocks = std::min<int64_t>(132 * 16, (threads + kStepThreads - 1) / kStepThreads);
      start(name, step_kernel<Body>, static_cast<unsigned>(blocks), kStepThreads, stream, a);
    }
    a.begin = a.end;
  }
}

}  // namespace troupe::cuda
