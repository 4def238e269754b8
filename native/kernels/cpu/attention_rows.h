// The softmax inside attention, row by row: scores in, probabilities and their gradients out. x_GRC: G heads, R query rows,
// C key columns. Row r of a block may see columns 0 to visible(r) - 1.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "kernels/cpu/attention_sight.h"

namespace troupe {

// Which columns a row of a block may see.
struct Visibility {
  bool causal;
  int64_t first_row;  // of the block, within all query rows

  int64_t of_row(int64_t row, int64_t num_columns) const {
    return causal && first_row + row + 1 < num_columns ? first_row + row + 1 : num_columns;
  }
};

// probabilities = softmax of scale * the visible scores, 0 elsewhere; logsumexp_GR is written for backward. Scores are
// float32 and are overwritten; probabilities have any float dtype, rounded once.
void softmax_rows(const at::Tensor& scores_GRC, Visibility visibility, float scale, const at::Tensor& probabilities_GRC,
                  const at::Tensor& logsumexp_GR);

// probabilities again, from scores (overwritten) and logsumexp, and the gradient of the scores:
// dscores = probabilities * (dprobabilities - dot_GR) * scale, where dot is the row's sum of dout * out. Replaces
// dprobabilities by dscores in place.
void softmax_rows_backward(const at::Tensor& scores_GRC, Visibility visibility, float scale,
                           const at::Tensor& logsumexp_GR, const at::Tensor& dot_GR, const at::Tensor& probabilities_GRC,
                           const at::Tensor& dprobabilities_GRC);

// The same for rows with different masks: `sight(row)` returns the mask of a row, counted over all heads. Probabilities come out
// dropped; in backward so do they, and the gradients that come in are those of the dropped ones.
using SightOfRow = std::function<RowSight(int64_t row)>;
void softmax_sighted_rows(const at::Tensor& scores_GRC, const SightOfRow& sight, float scale,
                          const at::Tensor& probabilities_GRC, const at::Tensor& logsumexp_GR);

// `dbiased_GRC`, where defined, gets the gradient of what the softmax is of, float32: dscores before they are scaled.
void softmax_sighted_rows_backward(const at::Tensor& scores_GRC, const SightOfRow& sight, float scale,
                                   const at::Tensor& logsumexp_GR, const at::Tensor& dot_GR,
                                   const at::Tensor& probabilities_GRC, const at::Tensor& dprobabilities_GRC,
                                   const at::Tensor& dbiased_GRC);

// The sum over the last dim of a * b, [B * H, R] float32, of cuts [B,H,R,D] with any strides.
at::Tensor row_dots(const at::Tensor& a_BHRD, const at::Tensor& b_BHRD);

// A copy [B * H, R, D] of a cut [B,H,R,D] with any strides, in the dtype given: what batched products take.
at::Tensor pack_heads(const at::Tensor& cut_BHRD, at::ScalarType dtype);

// The way back: overwrites the cut, in its own dtype.
void unpack_heads(const at::Tensor& packed_GRD, const at::Tensor& cut_BHRD);

// Not initialised: laid out as [B,T,H,D], the way projections read and write it, and seen as [B,H,T,D].
at::Tensor projected_heads(at::IntArrayRef sizes_BHTD, const at::TensorOptions& options);

// The gradient of keys or values: what every block of query rows adds to, in float32. Where one block has all rows that see
// a key, there is nothing to add to, and it is written where it belongs at once.
class KeyGradients {
 public:
  // `once`: each key gets one share, and every key does.
  KeyGradients(const at::Tensor& keys_BHSD, bool once);

  // The sums; `add` takes a slice of them.
  const at::Tensor& sums() const { return sums_; }

  void add(const at::Tensor& share_GSD, const at::Tensor& cut_of_sums);

  // In the dtype of the keys, laid out as `projected_heads`.
  at::Tensor rounded() const;

 private:
  bool once_;
  at::TensorOptions options_;
  at::Tensor sums_;
};

}  // namespace troupe
