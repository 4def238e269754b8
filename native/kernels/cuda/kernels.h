// What Troupe's operators do on tensors of a GPU. Arguments were checked by the operator, as for the CPU; those that it makes
// contiguous there are so here. Nothing waits for the device unless it says so.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/cuda/launch.h"

namespace troupe::cuda {

// Whether a tensor is for the kernels here.
#if TROUPE_CUDA_ON_HOST
bool holds(const at::Tensor& tensor);
#else
inline bool holds(const at::Tensor& tensor) { return tensor.is_cuda(); }
#endif

struct Normalized {
  at::Tensor y, mean, rstd;
};

struct NormGradients {
  at::Tensor x, weight, bias;
};

Normalized layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps);
NormGradients layer_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                                  const at::Tensor& mean, const at::Tensor& rstd, const at::Tensor& dsum);
// `mean` is not defined.
Normalized rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);
// `bias` is not defined.
NormGradients rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& rstd,
                                const at::Tensor& dsum);

at::Tensor bias_gelu(const at::Tensor& x, const at::Tensor& bias);
std::tuple<at::Tensor, at::Tensor> bias_gelu_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& bias);

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up);
std::tuple<at::Tensor, at::Tensor> swiglu_backward(const at::Tensor& dy, const at::Tensor& gate, const at::Tensor& up);

at::Tensor rotary(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines, float sign);

at::Tensor dropout(const at::Tensor& x, PhiloxPlace place, int64_t run, int64_t stride, uint64_t threshold, float scale);
void philox_uniform(const at::Tensor& to, PhiloxPlace place, float low, float high);
void philox_normal(const at::Tensor& to, PhiloxPlace place, float mean, float std);
void round_stochastic(const at::Tensor& out, const at::Tensor& values, PhiloxPlace place);

void add_range(const at::Tensor& to, const at::Tensor& from, bool accumulate);
// The same of contiguous tensors, each to its place in `to`.
void add_pieces(const at::Tensor& to, const std::vector<std::pair<int64_t, at::Tensor>>& pieces, bool accumulate);
// Waits for the device: the answer is the host's.
bool all_finite(at::TensorList tensors);

void chunk_square_sums(const at::Tensor& flat, const at::Tensor& sums);
// Adds to `sums`.
void sum_square_sums(const at::Tensor& shares, int64_t members, at::IntArrayRef chunks, const at::Tensor& sums);
void gradient_scales(const at::Tensor& squares, double divisor, at::ArrayRef<double> limits, bool leaves_out,
                     const at::Tensor& scales);
at::Tensor segment_maxima(const at::Tensor& flat, at::IntArrayRef ends);
at::Tensor exact_square_sums(const at::Tensor& flat, at::IntArrayRef ends, const std::vector<double>& bins);
std::tuple<at::Tensor, at::Tensor> factored_square_sums(const at::Tensor& grad, at::IntArrayRef shape, int64_t begin,
                                                        double scale, double coarse, double fine);
void adafactor_matrix(const at::Tensor& grad, const at::Tensor& row_factors, const at::Tensor& column_factors,
                      at::IntArrayRef shape, int64_t begin, double scale);

// Mean losses, differentiable: as the operators of these names. A target that is no class makes the loss NaN, for nothing is
// read back to refuse it.
at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& targets, int64_t ignore_index);
at::Tensor linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                                int64_t ignore_index);
at::Tensor vocabulary_statistics(const at::Tensor& logits, const Classes& classes);
void vocabulary_gradient(const at::Tensor& logits, const at::Tensor& logsumexp, const Classes& classes,
                         const at::Tensor& coefficients);

// Differentiable: through libtorch's fused attention.
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal, double scale);
at::Tensor masked_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const c10::optional<at::Tensor>& mask, const c10::optional<at::Tensor>& bias, bool causal,
                            int64_t window, double scale);

std::tuple<at::Tensor, at::Tensor> token_windows(const at::Tensor& tokens, at::IntArrayRef starts, int64_t length);

struct StepTensors {
  const at::Tensor* param;
  std::array<const at::Tensor*, 3> states;  // null where there is none
  const at::Tensor* grad;
  const c10::optional<at::Tensor>& low_precision;
  at::IntArrayRef segment_ends;
  const c10::optional<at::Tensor>& scale;
};
void with_step(const StepTensors& tensors, const std::function<void(Stream, const StepOf&)>& launch);

template <class Coefficients>
void run_step(const StepTensors& tensors, const Coefficients* of_segments) {
  with_step(tensors, [&](Stream stream, const StepOf& step) { launch_step(stream, step, of_segments); });
}

}  // namespace troupe::cuda
