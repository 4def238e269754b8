// Attention over tiles: scores, probabilities and their gradients of 64 query rows at a time stay in the cache, in float32 where they are
// sums. For processors that multiply bfloat16 themselves; a choice of the calling thread, since bits are not those of `attention`.
#pragma once

#include <ATen/core/Tensor.h>

namespace troupe {

// q, out and their gradients [B,H,T,D], k and v [B,H,S,D].
struct TileAttentionOptions {
  bool causal;
  float scale;
};

// Whether the thread wants tiles, and these tensors fit: bfloat16, widths of up to 128 in multiples of 32, up to 1,024 keys.
bool attends_in_tiles(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

// Writes `out` and `logsumexp_BHT1`, which has no gaps and is float32.
void attend_in_tiles(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, TileAttentionOptions options, const at::Tensor& out,
                     const at::Tensor& logsumexp_BHT1);

struct TileAttentionGradients {
  at::Tensor q, k, v;  // written; of the shapes of q, k and v, with rows of heads without gaps
};

// The gradients of `attend_in_tiles`, from what it was given and wrote.
void attend_in_tiles_backward(const at::Tensor& dout, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& out,
                              const at::Tensor& logsumexp_BHT1, TileAttentionOptions options, const TileAttentionGradients& gradients);

}  // namespace troupe
