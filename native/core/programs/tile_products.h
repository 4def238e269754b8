// Products of bfloat16 matrices over tiles, with what follows a product done while its tile is in the cache and still
// float32. For processors that multiply bfloat16 themselves; a choice of the calling thread, since bits are not oneDNN's.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "core/autograd/differentiable.h"

namespace troupe {

// Whether this processor and this libtorch multiply bfloat16 tiles.
bool has_tile_products();

// Whether products that nothing follows gain by tiles too: oneDNN's take longer than AMX as used here.
bool tiles_are_quickest();

// Whether a product [M,K] x [K,N] is large enough to gain.
bool gains_by_tiles(int64_t rows, int64_t inner, int64_t columns);

// Whether tiles can multiply a [M,K] and b [K,N], and gain by it.
bool has_tiles_for(const at::Tensor& a, const at::Tensor& b);

// Whether the calling thread's products of bfloat16 matrices go over tiles where they can. Returns what it was before.
bool set_tile_products(bool wanted);
bool wants_tile_products();

// Whether the product of a [M,K] and b [K,N] goes over tiles: the thread wants it, both are bfloat16, each has a dim without
// gaps, and they are large enough to gain.
bool multiplies_tiles(const at::Tensor& a, const at::Tensor& b);

enum class GeluForm { tanh, exact };

// As the operator `dropout` has it, of a complete tensor: element i takes word `offset` + i.
struct TileDropout {
  double p;
  int64_t seed, stream, offset;
};

// The operations on a product, in this order, in float32. Undefined tensors ask for nothing; those of which nothing else is said are
// [M,N] without gaps, in any shape, and bfloat16.
struct TileEpilogue {
  at::Tensor product;             // written: the product itself
  at::Tensor bias;                // [N], of any float dtype, added
  std::optional<GeluForm> gelu;   // applied
  at::Tensor activated;           // instead of both: the product is multiplied by gelu's slope at `activated` + bias
  std::optional<TileDropout> dropout;  // applied; not with gelu
  at::Tensor residual;            // added
  at::Tensor column_sums;         // [N], float32, written: the sum of the rows, before they are rounded
};

// out = a @ b with its epilogue, rounded once: a [M,K], b [K,N], out [M,N] bfloat16 without gaps, in any shape. Or out += a @ b, float32,
// without an epilogue. Every sum's order is given by the shapes alone, so bits do not depend on the number of threads. With
// `tiles_are_quickest` an `out` of two dims may have gaps between its rows.
void multiply_tiles(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out, const TileEpilogue& epilogue = {});

// The backward that bias and GELU leave, of what they save: their input, and the bias.
Backward bias_gelu_backward_of(bool is_tanh);
// That of dropout, which saves nothing.
Backward dropout_backward_of(const TileDropout& dropout);

}  // namespace troupe
