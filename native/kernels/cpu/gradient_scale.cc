// The factor of a step's gradient, computed where the sums of squares of its parts are, so that the host need not wait for them: from
// the norm, the clipping limit, and whether the step is skipped. Every operation is the host's own, in float64
// and in its order (src/actors/shard/reduce/gradient-norm.ts, src/compute/optim/clip.ts): a device's step has the host's bits.

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include "kernels/cpu/gradient_scale.h"
#include "kernels/register.h"

namespace troupe {
namespace {

void check_float64(const char* op, const at::Tensor& tensor, const char* name) {
  TORCH_CHECK(tensor.is_contiguous() && tensor.scalar_type() == at::kDouble, "[", op, "] expected ", name,
              " to be contiguous and float64, got ", tensor.scalar_type(), " of ", tensor.sizes());
}

// `shares`: a row a member, in which of every block `kinds` runs of so many sums follow each other; what is behind them is not
// read. Adds each kind's sum to `sums`: block after block, group after group of its sums (see group_sum).
void add_square_sums(const at::Tensor& shares, int64_t members, at::IntArrayRef chunks, const at::Tensor& sums) {
  const int64_t row = shares.numel() / members, kinds = sums.numel();
  double* to = sums.data_ptr<double>();
  BlockSquares block{shares.data_ptr<double>(), members, row, 0, 0};
  for (const int64_t count : chunks) {
    block.count = count;
    for (int64_t kind = 0; kind < kinds; kind++) {
      for (int64_t group = 0; group < groups_of(block); group++) to[kind] += group_sum(block, kind, group);
    }
    block.begin += kinds * count;
  }
}

TROUPE_KERNEL(sum_square_sums, add_square_sums);

at::Tensor sum_square_sums(const at::Tensor& shares, int64_t members, at::IntArrayRef chunks, int64_t kinds) {
  check_float64("sum_square_sums", shares, "shares");
  int64_t all = 0;
  for (const int64_t count : chunks) all += count;
  TORCH_CHECK(members >= 1 && kinds >= 1 && shares.numel() % members == 0 && shares.numel() / members >= kinds * all,
              "[sum_square_sums] expected ", members, " rows of ", kinds, " times ", all, " sums or more, got ",
              shares.numel(), " elements");
  const at::Tensor sums = at::zeros({kinds}, shares.options());
  sum_square_sums_kernel(shares, members, chunks, sums);
  return sums;
}

// `squares` [parts, kinds]; returns for each kind (factor / divisor, 1 if the step is skipped), where the factor clips the norm of
// all parts to the kind's limit. A step is skipped if the first kind's norm, that of the complete gradient, is not finite.
void make_scales(const at::Tensor& squares, double divisor, at::ArrayRef<double> limits, bool leaves_out,
                 const at::Tensor& scales) {
  const auto kinds = static_cast<int64_t>(limits.size());
  const GradientParts gradient{squares.data_ptr<double>(), squares.size(0), kinds, divisor};
  double* to = scales.data_ptr<double>();
  for (int64_t kind = 0; kind < kinds; kind++) scale_of(gradient, kind, limits[kind], leaves_out, to + 2 * kind);
}

TROUPE_KERNEL(gradient_scales, make_scales);

at::Tensor gradient_scales(const at::Tensor& squares, double divisor, at::ArrayRef<double> limits, bool leaves_out) {
  check_float64("gradient_scales", squares, "squares");
  const auto kinds = static_cast<int64_t>(limits.size());
  TORCH_CHECK(squares.dim() == 2 && squares.size(0) >= 1 && kinds >= 1 && squares.size(1) == kinds,
              "[gradient_scales] expected squares of one part or more, of each ", kinds, " kinds, got ", squares.sizes());
  const at::Tensor scales = at::empty({kinds, 2}, squares.options());
  gradient_scales_kernel(squares, divisor, limits, leaves_out, scales);
  return scales;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("sum_square_sums(Tensor shares, int members, int[] chunks, int kinds) -> Tensor");
  m.def("gradient_scales(Tensor squares, float divisor, float[] limits, bool leaves_out) -> Tensor");
}

TROUPE_OPERATORS(m) {
  m.impl("sum_square_sums", sum_square_sums);
  m.impl("gradient_scales", gradient_scales);
}

}  // namespace troupe
