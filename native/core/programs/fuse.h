// Products of a program with what follows them, computed tile by tile (core/programs/tile_products.h): numbers stay float32 from the
// product to the end, and are rounded once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/programs/tile_products.h"

namespace troupe {

class Program;
struct Instruction;
struct Played;

// The operands of its instruction are a, b, the bias and the residual, without a slot where there is none; then those of dropout behind
// its tensor, if it has any.
struct FusedProduct {
  bool has_bias = false;
  bool has_dropout = false;
  bool has_residual = false;
  std::optional<GeluForm> gelu;  // forward's leaves the backward of bias and GELU
  int32_t backward = -1;         // in backward: the one that is part of it; its results are those of `gradient`

  // Nothing follows the product.
  bool is_bare() const { return !has_bias && !has_dropout && !has_residual && !gelu; }
  std::string name() const;
};

// `keeps`: whether backward will come.
void play_product(const Program& program, const Instruction& instruction, Played& played, bool keeps);
// Leaves the backward of a product's dropout without the product.
void leave_dropout(const Instruction& instruction, Played& played);

}  // namespace troupe
