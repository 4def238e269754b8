// Results of the kernels of norms.
#pragma once

#include <ATen/core/Tensor.h>

namespace troupe {

struct Normalized {
  at::Tensor y, mean, rstd;  // `mean` is not defined for RMS norm
};

// x + residual, rounded to their dtype, and its norm.
struct AddedNorm {
  at::Tensor sum;
  Normalized norm;
};

struct NormGradients {
  at::Tensor x, weight, bias;  // `bias` is not defined for RMS norm
};

}  // namespace troupe
