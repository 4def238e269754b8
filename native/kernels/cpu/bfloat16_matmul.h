// Products of bfloat16 matrices on processors that have none: through float32 panels.
#pragma once

#include <ATen/core/Tensor.h>

namespace troupe {

// Whether bfloat16 matrices are multiplied here, and not by libtorch: on x86 processors without AVX512_BF16 (nor AMX), or
// where ONEDNN_MAX_CPU_ISA hides it. Decided once per process.
bool multiplies_bfloat16_in_panels();

// out = a @ b, or out + a @ b where `add` is set: a [M,K], b [K,N], out [M,N], all bfloat16 with any strides. Summed in float32, rounded once.
void multiply_bfloat16(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out, bool add);

// One product a batch: a [G,M,K], b [G,K,N] → [G,M,N], all bfloat16.
at::Tensor multiply_bfloat16_batches(const at::Tensor& a, const at::Tensor& b);

}  // namespace troupe
