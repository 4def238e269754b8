// Batches of products whose matrices lie apart, as heads do in what a layer projects: read and written where they lie.
#pragma once

#include <cstdint>

#include "core/programs/float32_products.h"

namespace troupe {

class Program;
struct Instruction;
struct Played;

// How a factor or a product lies in its slot, in elements.
struct HeadsLayout {
  int64_t offset = 0;
  int64_t outer = 0, inner = 0, row = 0, column = 0;
};

// The operands of its instruction are a and b; its result is that of the copy which followed.
struct HeadsProduct {
  HeadsLayout a, b, out;
  GridSizes sizes;
};

void play_heads(const Program& program, const Instruction& instruction, Played& played);

}  // namespace troupe
