// Gradients of tables of vectors, of which a batch looks up few rows: the rows alone, in place of a table of zeros around them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace troupe {

// While it lives, gradients that look-ups of the calling thread give straight to a leaf may be sparse: rows of the table, each once, in
// order, with the sums that the dense gradient has.
class RowGradients {
 public:
  RowGradients();
  ~RowGradients();
  RowGradients(const RowGradients&) = delete;
  RowGradients& operator=(const RowGradients&) = delete;

 private:
  const bool outer_;
};

// The sums of rows with the same id, [num_rows, width] sparse, in the order of the ids; rows of one id are added in their order, and
// rounded each time. ids_N int64; values_ND of a float dtype of training.
at::Tensor sum_rows(const at::Tensor& ids_N, const at::Tensor& values_ND, int64_t num_rows);

}  // namespace troupe
