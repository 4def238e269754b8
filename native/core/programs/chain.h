// Elementwise float32 operators that follow each other, computed in one pass: a tile goes through all of them while it is in the
// cache. Each rounds as it does alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe {

enum class Elementwise : uint8_t { add, subtract, multiply, divide, negate };

struct ChainStep {
  Elementwise op = Elementwise::add;
  // Values: the sources, then one for each step.
  int32_t one = 0;
  int32_t other = 0;     // as `one` where there is no second
  int32_t scratch = -1;  // the tile that its value is in; -1: an output
};

struct ChainSource {
  float scalar = 0;
  int64_t period = 0;  // elements after which it repeats; 0: the scalar
};

struct Chain {
  std::vector<ChainSource> sources;
  std::vector<ChainStep> steps;
  int32_t num_scratch = 0;
  int64_t numel = 0;
  mutable std::shared_ptr<const void> kernel;  // what a device has compiled of it, by its first call
};

// `sources`: a pointer for each source, null for scalars; `outputs`: one for each step that is an output, in order. Outputs overlap
// nothing.
void run_chain(const Chain& chain, const std::vector<const float*>& sources, const std::vector<float*>& outputs);

}  // namespace troupe
