// Float32 products in tiles, as programs use them: kernels/cpu/float32_tiles.cc.
#pragma once

#include <cstdint>

namespace troupe {

// Whether tiles have the bits of a product [rows, inner] @ [inner, columns], whatever multiplies it and on however many threads.
bool has_known_sums(int64_t rows, int64_t inner, int64_t columns);

// Matrices in two dims of batches, as heads lie in what a layer projects; elements from one to the next.
struct MatrixGrid {
  float* first;
  int64_t outer, inner, row, column;
};

struct GridSizes {
  int64_t outer, inner, rows, terms, columns;
};

// Whether `bmm` of so many products multiplies them in tiles, either factor first.
bool fits_grids(int64_t batches, int64_t rows, int64_t inner, int64_t columns);

// out = a @ b for each pair, with the bits of `bmm`, for which `fits_grids`. Rows or columns of `a` have no gaps, nor have rows of `out`.
void multiply_grids_in_tiles(const MatrixGrid& a, const MatrixGrid& b, const MatrixGrid& out, const GridSizes& sizes);

}  // namespace troupe
