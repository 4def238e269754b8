#include "core/programs/chain_text.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

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

// A bfloat16 as its 16 bits: see float_bits.h, whose operations these are.
constexpr const char* kBefore = R"(struct alignas(16) Four { float at[4]; };
struct alignas(8) FourNarrow { unsigned short at[4]; };
static __device__ inline float widened(float value) { return value; }
static __device__ inline float widened(unsigned short bits) { return __int_as_float((int)((unsigned)bits << 16)); }
static __device__ inline void round_to(float& to, float value) { to = value; }
static __device__ inline void round_to(unsigned short& to, float value) {
  const unsigned bits = (unsigned)__float_as_int(value);
  to = (bits & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC0u : (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
}
)";

class Writer {
 public:
  explicit Writer(const Chain& chain) : chain_(chain) {}

  std::string text() {
    text_ = kBefore;
    text_ += std::string("using Index = unsigned") + (chain_.numel < (int64_t{1} << 31) ? "" : " long long") + ";\n\nextern \"C\" __global__ void __launch_bounds__(256) ";
    text_ += std::string(kChainKernel) + "(" + parameters() + ") {\n";
    text_ += "  const Index numel = (Index)count, stride = (Index)gridDim.x * blockDim.x;\n";
    text_ += "  const Index first = (Index)blockIdx.x * blockDim.x + threadIdx.x, fours = wide ? numel / 4 : 0;\n";
    loop("first; i < fours", 4);
    loop("fours * 4 + first; i < numel", 1);
    return text_ + "}\n";
  }

 private:
  bool repeats(size_t source) const { return chain_.sources[source].period != chain_.numel; }
  static const char* element(ChainType type) { return type == ChainType::bfloat16 ? "unsigned short" : "float"; }
  static const char* four(ChainType type) { return type == ChainType::bfloat16 ? "FourNarrow" : "Four"; }

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
    for (size_t i = 0; i < chain_.steps.size(); i++) step(i, wide);
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
      text_ += std::string("    const ") + element(source.type) + " a" + name + " = " + from + "[" + place(index, "at") + "];\n";
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

  void step(size_t index, bool wide) {
    const ChainStep& step = chain_.steps[index];
    const ElementwiseFacts& facts = elementwise_facts(step.op);
    const std::string name = number(index), before = wide ? "      " : "    ";
    text_ += before + element(step.type) + " v" + name + ";\n" + before + "{ const float a = " + value(step.one, wide);
    if (facts.arity == 2) text_ += ", b = " + value(step.other, wide);
    text_ += "; round_to(v" + name + ", " + facts.value + "); }\n";
    if (step.scratch < 0) text_ += before + (wide ? "r" + name + ".at[j] = v" : "o" + name + "[at] = v") + name + ";\n";
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
