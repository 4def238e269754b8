#include "kernels/cuda/chain_text.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <set>

#include "kernels/cpu/float_bits.h"
#include "kernels/cpu/row_rules.h"

namespace troupe {
namespace {

std::string number(int64_t value) { return std::to_string(value); }

// Its bits: a decimal fraction might be read as another number.
std::string literal(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  char text[40];
  std::snprintf(text, sizeof text, "__int_as_float((int)0x%08" PRIx32 "u)", bits);
  return text;
}

// Names that the texts of the CPU's headers use.
constexpr const char* kBefore = R"(struct alignas(16) Four { float at[4]; };
struct alignas(8) FourNarrow { unsigned short at[4]; };
using uint32_t = unsigned;
using int32_t = int;
using uint16_t = unsigned short;
#define TROUPE_INLINE __device__ inline
static TROUPE_INLINE uint32_t bits_of(float value) { return (uint32_t)__float_as_int(value); }
static TROUPE_INLINE float float_of(uint32_t bits) { return __int_as_float((int)bits); }
)";
// Elements as float32 and back; narrow ones lie as their bits.
constexpr const char* kOfFloat32 = R"(
static TROUPE_INLINE float widened(float value) { return value; }
static TROUPE_INLINE void round_to(float& to, float value) { to = value; }
)";
constexpr const char* kOfBFloat16 = R"(
static TROUPE_INLINE float widened(uint16_t bits) { return float_of_bfloat16(bits); }
static TROUPE_INLINE void round_to(uint16_t& to, float value) { to = bfloat16_of(value); }
)";
constexpr const char* kOfFloat16 = R"(
static TROUPE_INLINE float widened(uint16_t bits) { return float_of_float16(bits); }
static TROUPE_INLINE void round_to(uint16_t& to, float value) { to = float16_of(value); }
)";

std::string text_of(ChainNarrow narrow) {
  const bool is_half = narrow == ChainNarrow::float16;
  return std::string(kOfFloat32) + (is_half ? kFloat16Text : kBFloat16Text) + (is_half ? kOfFloat16 : kOfBFloat16);
}

class Writer {
 public:
  explicit Writer(const Chain& chain) : chain_(chain) {}

  std::string text() {
    text_ = kBefore + text_of(chain_.narrow);
    if (has_elementary()) {
      for (const char* const part : {kExpText, kLogText, kLogOfText, kTanhText, kSigmoidText, kTanhGeluText, kExactGeluText}) text_ += std::string(part) + "\n";
    }
    if (chain_.has_rows()) text_ += std::string(kLargerText) + "\n";
    text_ += std::string("using Index = unsigned") + (chain_.numel < (int64_t{1} << 31) ? "" : " long long") + ";\n\nextern \"C\" __global__ void ";
    text_ += "__launch_bounds__(" + std::to_string(kChainThreads) + ") " + kChainKernel + "(" + parameters() + ") {\n";
    if (chain_.has_rows()) each_row();
    else each_element();
    return text_ + "}\n";
  }

 private:
  bool has_elementary() const {
    return std::any_of(chain_.steps.begin(), chain_.steps.end(), [](const ChainStep& step) { return is_elementary(step.op); });
  }

  void each_element() {
    text_ += "  const Index numel = (Index)count, stride = (Index)gridDim.x * blockDim.x;\n";
    text_ += "  const Index first = (Index)blockIdx.x * blockDim.x + threadIdx.x, fours = wide ? numel / 4 : 0;\n";
    loop("first; i < fours", 4);
    loop("fours * 4 + first; i < numel", 1);
  }

  // A loop over the row's elements for each number that is made of them, and one more for what is written. Elements are computed again in
  // each: they are in the cache.
  void each_row() {
    const std::string lanes = number(kChainLanes);
    text_ += "  const Index rows = (Index)count, lane = threadIdx.x % " + lanes + ", warps = blockDim.x / " + lanes + ";\n";
    text_ += "  for (Index row = blockIdx.x * warps + threadIdx.x / " + lanes + "; row < rows; row += gridDim.x * warps) {\n";
    for (size_t i = 0; i < chain_.sources.size(); i++) {
      if (chain_.sources[i].is_row) read(i, false);
    }
    std::vector<int32_t> written;
    for (size_t i = 0; i < chain_.steps.size(); i++) {
      const ChainStep& made = chain_.steps[i];
      if (!made.is_row) {
        if (made.scratch < 0) written.push_back(static_cast<int32_t>(chain_.sources.size() + i));
        continue;
      }
      if (made.way == ChainWay::each) step(i, false, false);
      else reduce(i);
      if (made.scratch < 0) text_ += "    if (lane == 0) o" + number(i) + "[row] = v" + number(i) + ";\n";
    }
    if (!written.empty()) {
      begin_elements(written, true);
      text_ += "    }\n";
    }
    text_ += "  }\n";
  }

  void reduce(size_t index) {
    const ChainStep& made = chain_.steps[index];
    const bool is_max = made.way == ChainWay::max;
    const std::string name = number(index), all = "m" + name;
    const auto join = [&](const std::string& other) {
      return all + " = " + (is_max ? "larger_of(" + all + ", " + other + ")" : all + " + " + other) + ";\n";
    };
    text_ += "    float " + all + " = " + (is_max ? "__int_as_float((int)0xFF800000u)" : "0.0f") + ";\n";
    begin_elements({made.one}, false);
    text_ += "      " + join(value(made.one, false)) + "    }\n";
    text_ += "#pragma unroll\n    for (int half = " + number(kChainLanes / 2) + "; half > 0; half /= 2) " + join("__shfl_down_sync(~0u, " + all + ", half)");
    text_ += "    " + all + " = __shfl_sync(~0u, " + all + ", 0)" + (made.way == ChainWay::mean ? " / " + number(chain_.width) + ".0f" : "") + ";\n";
    text_ += std::string("    ") + element(made.type) + " v" + name + ";\n    round_to(v" + name + ", " + all + ");\n";
  }

  // Opens a loop over the row's elements that makes so many values, and what they come of.
  void begin_elements(const std::vector<int32_t>& wanted, bool writes) {
    const auto num_sources = static_cast<int32_t>(chain_.sources.size());
    std::set<size_t> sources, steps;
    std::vector<int32_t> open = wanted;
    while (!open.empty()) {
      const int32_t value = open.back();
      open.pop_back();
      if (value < num_sources) {
        if (!chain_.sources[static_cast<size_t>(value)].is_row) sources.insert(static_cast<size_t>(value));
        continue;
      }
      const auto index = static_cast<size_t>(value - num_sources);
      const ChainStep& made = chain_.steps[index];
      if (!made.is_row && steps.insert(index).second) open.insert(open.end(), {made.one, made.other});
    }
    const std::string width = number(chain_.width);
    text_ += "    for (Index i = lane; i < " + width + "; i += " + number(kChainLanes) + ") {\n";
    text_ += "    const Index at = row * " + width + " + i;\n";
    for (const size_t source : sources) read(source, false);
    for (const size_t index : steps) step(index, false, writes);
  }

  bool repeats(size_t index) const {
    const ChainSource& source = chain_.sources[index];
    return source.period != (source.is_row ? chain_.numel / chain_.width : chain_.numel);
  }
  static const char* element(ChainType type) { return type == ChainType::narrow ? "unsigned short" : "float"; }
  static const char* four(ChainType type) { return type == ChainType::narrow ? "FourNarrow" : "Four"; }

  std::string parameters() const {
    std::string all;
    for (size_t i = 0; i < chain_.sources.size(); i++) {
      if (chain_.sources[i].period != 0) all += std::string("const ") + element(chain_.sources[i].type) + "* s" + number(i) + ", ";
    }
    for (size_t i = 0; i < chain_.steps.size(); i++) {
      if (chain_.steps[i].scratch < 0) all += std::string(element(chain_.steps[i].type)) + "* o" + number(i) + ", ";
    }
    return all + "bool wide, unsigned long long count";
  }

  // `count` elements at a time.
  void loop(const std::string& range, int count) {
    const bool wide = count != 1;
    text_ += "  for (Index i = " + range + "; i += stride) {\n";
    text_ += wide ? "    const Index at = i * 4;\n" : "    const Index at = i;\n";
    for (size_t i = 0; i < chain_.sources.size(); i++) read(i, wide);
    for (size_t i = 0; i < chain_.steps.size(); i++) {
      const ChainStep& step = chain_.steps[i];
      if (wide && step.scratch < 0) text_ += std::string("    ") + four(step.type) + " r" + number(i) + ";\n";
    }
    if (wide) text_ += "#pragma unroll\n    for (int j = 0; j < 4; j++) {\n";
    for (size_t i = 0; i < chain_.steps.size(); i++) step(i, wide, true);
    if (wide) text_ += "    }\n";
    for (size_t i = 0; i < chain_.steps.size(); i++) {
      const ChainStep& step = chain_.steps[i];
      if (wide && step.scratch < 0) text_ += std::string("    *(") + four(step.type) + "*)(o" + number(i) + " + at) = r" + number(i) + ";\n";
    }
    text_ += "  }\n";
  }

  // The element of a source for element `at` of the chain.
  std::string place(size_t index, const std::string& at) const {
    const ChainSource& source = chain_.sources[index];
    if (!repeats(index)) return at;
    const std::string held = source.hold == 1 ? at : at + " / (Index)" + number(source.hold);
    return held + " % (Index)" + number(source.period);
  }

  void read(size_t index, bool wide) {
    const ChainSource& source = chain_.sources[index];
    if (source.period == 0) return;
    const std::string name = number(index), from = "s" + name;
    if (!wide) {
      text_ += std::string("    const ") + element(source.type) + " a" + name + " = " + from + "[" + place(index, source.is_row ? "row" : "at") + "];\n";
    } else if (reads_wide(source, chain_.numel)) {
      text_ += std::string("    const ") + four(source.type) + " a" + name + " = *(const " + four(source.type) + "*)(" + from + " + " + place(index, "at") + ");\n";
    } else {
      text_ += std::string("    ") + four(source.type) + " a" + name + ";\n#pragma unroll\n    for (int j = 0; j < 4; j++) a" + name + ".at[j] = " + from +
               "[" + place(index, "(at + j)") + "];\n";
    }
  }

  std::string value(int32_t index, bool wide) const {
    const auto num_sources = static_cast<int32_t>(chain_.sources.size());
    if (index >= num_sources) return "widened(v" + number(index - num_sources) + ")";
    const ChainSource& source = chain_.sources[static_cast<size_t>(index)];
    if (source.period == 0) return literal(source.scalar);
    return "widened(a" + number(index) + (wide ? ".at[j])" : ")");
  }

  void step(size_t index, bool wide, bool writes) {
    const ChainStep& step = chain_.steps[index];
    const ElementwiseFacts& facts = elementwise_facts(step.op);
    const std::string name = number(index), before = wide ? "      " : "    ";
    text_ += before + element(step.type) + " v" + name + ";\n" + before + "{ const float a = " + value(step.one, wide);
    if (facts.arity == 2) text_ += ", b = " + value(step.other, wide);
    text_ += "; round_to(v" + name + ", " + facts.value + "); }\n";
    if (writes && step.scratch < 0) text_ += before + (wide ? "r" + name + ".at[j] = v" : "o" + name + "[at] = v") + name + ";\n";
  }

  const Chain& chain_;
  std::string text_;
};

}  // namespace

bool reads_wide(const ChainSource& source, int64_t numel) {
  return source.period == numel || (source.hold == 1 && source.period % 4 == 0);
}

std::string chain_text(const Chain& chain) { return Writer(chain).text(); }

}  // namespace troupe
