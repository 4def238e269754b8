// Products of float32 matrices by whichever of libtorch's two libraries is quicker on this processor.
#pragma once

#include <ATen/core/Tensor.h>

namespace troupe {

// Whether products are taken from libtorch at all: on AMD processors with AVX-512. Decided once per process.
bool chooses_float32_library();

// Whether MKL leaves AVX-512 alone, if there is any: on AMD's processors.
bool mkl_keeps_to_avx2();

// Whether MKL multiplies by AVX-512 if no setting of its own forbids it: on Intel's processors that have it.
bool mkl_may_use_avx512();

// Whether a product of this size should go to oneDNN: [.., M, K] @ [.., K, N], float32, shapes that fit each other.
bool onednn_is_quicker(const at::Tensor& a, const at::Tensor& b);

// The multiplications of a product from which on it should, which no product has where it never should.
int64_t least_for_onednn();

// sum = a @ b, or sum + a @ b where `add` is set: a [M,K], b [K,N], sum [M,N] contiguous; all float32.
void multiply_float32(const at::Tensor& a, const at::Tensor& b, const at::Tensor& sum, bool add);

// One product a batch: a [G,M,K], b [G,K,N] → [G,M,N]; all float32.
at::Tensor multiply_float32_batches(const at::Tensor& a, const at::Tensor& b);

}  // namespace troupe
