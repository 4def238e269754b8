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

class Writer {
 public:
  explicit Writer(const Chain& chain) : chain_(chain) {}

  std::string text() {
    text_ = "struct alignas(16) Four { float at[4]; };\n";
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

  std::string parameters() const {
    std::string all;
    for (size_t i = 0; i < chain_.sources.size(); i++) {
      if (chain_.sources[i].period != 0) all += "const float* s" + number(i) + ", ";
    }
    for (size_t i = 0; i < chain_.steps.size(); i++) {
      if (chain_.steps[i].scratch < 0) all += "float* o" + number(i) + ", ";
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
      if (wide && chain_.steps[i].scratch < 0) text_ += "    Four r" + number(i) + ";\n";
    }
    if (wide) text_ += "#pragma unroll\n    for (int j = 0; j < 4; j++) {\n";
    for (size_t i = 0; i < chain_.steps.size(); i++) step(i, wide);
    if (wide) text_ += "    }\n";
    for (size_t i = 0; i < chain_.steps.size(); i++) {
      if (wide && chain_.steps[i].scratch < 0) text_ += "    *(Four*)(o" + number(i) + " + at) = r" + number(i) + ";\n";
    }
    text_ += "  }\n";
  }

  void read(size_t source, bool wide) {
    const int64_t period = chain_.sources[source].period;
    if (period == 0) return;
    const std::string name = number(source), from = "s" + name;
    const std::string place = !repeats(source) ? "at" : "at % (Index)" + number(period);
    if (!wide) {
      text_ += "    const float a" + name + " = " + from + "[" + place + "];\n";
    } else if (!repeats(source) || period % 4 == 0) {
      text_ += "    const Four a" + name + " = *(const Four*)(" + from + " + " + place + ");\n";
    } else {
      text_ += "    Four a" + name + ";\n#pragma unroll\n    for (int j = 0; j < 4; j++) a" + name + ".at[j] = " + from +
               "[(at + j) % (Index)" + number(period) + "];\n";
    }
  }

  std::string value(int32_t index, bool wide) const {
    const auto num_sources = static_cast<int32_t>(chain_.sources.size());
    if (index >= num_sources) return "v" + number(index - num_sources);
    const ChainSource& source = chain_.sources[static_cast<size_t>(index)];
    if (source.period == 0) return literal(source.scalar);
    return "a" + number(index) + (wide ? ".at[j]" : "");
  }

  void step(size_t index, bool wide) {
    const ChainStep& step = chain_.steps[index];
    const std::string one = value(step.one, wide), other = value(step.other, wide), name = number(index);
    text_ += std::string(wide ? "      " : "    ") + "const float v" + name + " = ";
    switch (step.op) {
      case Elementwise::add: text_ += one + " + " + other; break;
      case Elementwise::subtract: text_ += one + " - " + other; break;
      case Elementwise::multiply: text_ += one + " * " + other; break;
      case Elementwise::divide: text_ += one + " / " + other; break;
      case Elementwise::negate: text_ += "-" + one; break;
    }
    text_ += ";\n";
    if (step.scratch >= 0) return;
    text_ += wide ? "      r" + name + ".at[j] = v" + name + ";\n" : "    o" + name + "[at] = v" + name + ";\n";
  }

  const Chain& chain_;
  std::string text_;
};

}  // namespace

std::string chain_text(const Chain& chain) { return Writer(chain).text(); }

}  // namespace troupe
