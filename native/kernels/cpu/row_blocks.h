// Cuts the rows of a matrix into blocks that depend on its shape only, for sums over rows: each block's sum is made by one
// thread in row order, then the blocks are added in order. So the bits do not depend on the number of threads.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/add_range.h"

namespace troupe {

// Rows first to last - 1 of a matrix with `dim` columns.
struct Rows {
  int64_t first;
  int64_t last;
  int64_t dim;
};

class RowBlocks {
 public:
  // The rows of `x` are its last dim.
  explicit RowBlocks(const at::Tensor& x)
      : dim_(x.size(-1)),
        num_rows_(dim_ == 0 ? 0 : x.numel() / dim_),
        block_rows_(std::max(kMinRows, (num_rows_ + kMaxBlocks - 1) / kMaxBlocks)),
        num_blocks_((num_rows_ + block_rows_ - 1) / block_rows_) {}

  int64_t num_rows() const { return num_rows_; }

  // Calls body(block, rows) for every block, in parallel.
  template <class Body>
  void each(const Body& body) const {
    at::parallel_for(0, num_blocks_, grain_rows(block_rows_ * dim_), [&](int64_t first, int64_t last) {
      for (int64_t block = first; block < last; block++) {
        body(block, Rows{block * block_rows_, std::min(num_rows_, (block + 1) * block_rows_), dim_});
      }
    });
  }

  // One float32 row of zeros for each block, [blocks, dim]; on the device of `x`.
  at::Tensor zero_sums(const at::Tensor& x) const {
    return at::zeros({std::max<int64_t>(1, num_blocks_), dim_}, x.options().dtype(at::kFloat));
  }

  // The sum of the blocks' rows, [dim]. Overwrites them.
  at::Tensor add_up(const at::Tensor& sums) const {
    auto* total = sums.data_ptr<float>();
    for (int64_t block = 1; block < num_blocks_; block++) add_range(total, total + block * dim_, dim_, true);
    return sums[0];
  }

 private:
  static constexpr int64_t kMinRows = 16;
  static constexpr int64_t kMaxBlocks = 64;

  int64_t dim_;
  int64_t num_rows_;
  int64_t block_rows_;
  int64_t num_blocks_;
};

}  // namespace troupe
