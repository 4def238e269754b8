// Elementwise operators that follow each other, computed in one pass: a tile goes through all of them while it is in the cache. They
// compute in float32; where a value is bfloat16 or float16, it is rounded as its operator alone rounds it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe {

// The operators: what they are called, how many operands they have, and their value. The host's compiler reads the expressions as code,
// a device's as text. Each is one rounding, or what libtorch computes by the same roundings, be it in vectors or one by one.
#define TROUPE_ELEMENTWISE(EACH)                      \
  EACH(add, 2, a + b)                                 \
  EACH(sub, 2, a - b)                                 \
  EACH(mul, 2, a * b)                                 \
  EACH(div, 2, a / b)                                 \
  EACH(neg, 1, -a)                                    \
  EACH(abs, 1, fabsf(a))                              \
  EACH(sqrt, 1, sqrtf(a))                             \
  EACH(rsqrt, 1, 1.0f / sqrtf(a))                     \
  EACH(reciprocal, 1, 1.0f / a)                       \
  EACH(square, 1, a * a)                              \
  EACH(cube, 1, a * a * a)                            \
  EACH(relu, 1, a < 0.0f ? 0.0f : a)                  \
  EACH(relu_backward, 2, b <= 0.0f ? 0.0f : a)        \
  EACH(to, 1, a)

// Those of the project's own elementary functions: for `fast`, with other bits than libtorch's.
#define TROUPE_ELEMENTARY(EACH)                       \
  EACH(exp, 1, exp_f32(a))                            \
  EACH(log, 1, log_of(a))                             \
  EACH(tanh, 1, tanh_f32(a))                          \
  EACH(tanh_backward, 2, a * (1.0f - b * b))          \
  EACH(sigmoid, 1, sigmoid_f32(a))                    \
  EACH(sigmoid_backward, 2, a * ((1.0f - b) * b))     \
  EACH(silu, 1, a * sigmoid_f32(a))                   \
  EACH(silu_backward, 2, a * silu_slope(b))           \
  EACH(gelu, 1, ExactGelu::value(a))                  \
  EACH(gelu_backward, 2, a * ExactGelu::slope(b))     \
  EACH(gelu_tanh, 1, TanhGelu::value(a))              \
  EACH(gelu_tanh_backward, 2, a * TanhGelu::slope(b))

enum class Elementwise : uint8_t {
#define TROUPE_EACH(name, arity, value) name,
  TROUPE_ELEMENTWISE(TROUPE_EACH) TROUPE_ELEMENTARY(TROUPE_EACH)
#undef TROUPE_EACH
};

struct ElementwiseFacts {
  const char* name;
  int arity;
  const char* value;  // of `a` and `b`
};

inline bool is_elementary(Elementwise op) { return op >= Elementwise::exp; }

inline const ElementwiseFacts& elementwise_facts(Elementwise op) {
  static constexpr ElementwiseFacts all[] = {
#define TROUPE_EACH(name, arity, value) {#name, arity, #value},
      TROUPE_ELEMENTWISE(TROUPE_EACH) TROUPE_ELEMENTARY(TROUPE_EACH)
#undef TROUPE_EACH
  };
  return all[static_cast<size_t>(op)];
}

enum class ChainType : uint8_t { float32, narrow };

// The dtype of a chain's narrow values: a chain has one.
enum class ChainNarrow : uint8_t { bfloat16, float16 };

// How a step's value comes of its operands: element by element, as the sum, mean or largest of each row, or as a row's number for each of
// its elements. Rows are for `fast`.
enum class ChainWay : uint8_t { each, sum, mean, max, spread };

struct ChainStep {
  ChainWay way = ChainWay::each;
  Elementwise op = Elementwise::to;
  // Values: the sources, then one for each step.
  int32_t one = 0;
  int32_t other = 0;                      // as `one` where there is no second
  int32_t scratch = -1;                   // the tile that its value is in; -1: an output
  ChainType type = ChainType::float32;    // what its value is rounded to
  bool is_row = false;                    // its value is one number for each row
};

inline const char* name_of(const ChainStep& step) {
  constexpr const char* ways[] = {"", "sum", "mean", "max", "spread"};
  return step.way == ChainWay::each ? elementwise_facts(step.op).name : ways[static_cast<size_t>(step.way)];
}

// Element i of the chain, or row i, is element i / hold % period of a tensor.
struct ChainSource {
  float scalar = 0;
  int64_t period = 0;  // 0: the scalar
  int64_t hold = 1;
  ChainType type = ChainType::float32;
  bool is_row = false;
};

// How many lanes a row's sum has: element i goes to lane i mod so many, and lanes are joined by halves. As many threads of a GPU share a row.
constexpr int kChainLanes = 32;

struct Chain {
  std::vector<ChainSource> sources;
  std::vector<ChainStep> steps;
  ChainNarrow narrow = ChainNarrow::bfloat16;
  int32_t num_scratch = 0;
  int64_t numel = 0;
  int64_t width = 1;  // elements of a row
  mutable std::shared_ptr<const void> kernel;  // what a device has compiled of it, by its first call

  bool has_rows() const { return width > 1; }
};

// `sources`: a pointer for each source, null for scalars; `outputs`: one for each step that is an output, in order. Outputs overlap
// nothing.
void run_chain(const Chain& chain, const std::vector<const void*>& sources, const std::vector<void*>& outputs);

}  // namespace troupe
