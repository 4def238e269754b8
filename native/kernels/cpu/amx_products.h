// Products of bfloat16 matrices by AMX.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/programs/tile_products.h"

namespace troupe {

// As `multiply_tiles`, for processors whose instruction set is `Isa::amx`.
void multiply_by_amx(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out, const TileEpilogue& epilogue);

}  // namespace troupe
