// Finds elementwise operators that follow each other in a recorded program, and makes one pass of them.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/programs/program.h"

namespace troupe {
namespace {

std::optional<ChainType> type_of(const Geometry& geometry) {
  if (geometry.dtype == at::kFloat) return ChainType::float32;
  if (geometry.dtype == at::kBFloat16) return ChainType::bfloat16;
  return std::nullopt;
}

std::optional<double> number_of(const Operand& operand) {
  if (operand.kind != Operand::Kind::constant) return std::nullopt;
  const c10::IValue& value = operand.constant;
  if (value.isTensor() && value.toTensor().defined()) return value.toTensor().item().toDouble();
  if (value.isDouble()) return value.toDouble();
  if (value.isInt()) return static_cast<double>(value.toInt());
  return std::nullopt;
}

// How a tensor repeats in a result of other sizes: rows of it over and over, each element for a while, or both. Nothing where its elements
// do not lie one behind the other, or dims of both kinds take turns.
std::optional<ChainSource> source_in(const Geometry& tensor, const Geometry& result) {
  const auto type = type_of(tensor);
  if (!type || tensor.sizes.size() > result.sizes.size()) return std::nullopt;
  ChainSource source{0, 1, 1, *type};
  const size_t before = result.sizes.size() - tensor.sizes.size();
  bool is_over = false;  // the dims that are not repeated
  for (size_t i = result.sizes.size(); i-- > 0;) {
    const int64_t size = result.sizes[i];
    if (size == 1) continue;
    const bool repeats = i < before || tensor.sizes[i - before] == 1 || tensor.strides[i - before] == 0;
    if (repeats) {
      if (source.period == 1) source.hold *= size;
      else is_over = true;
      continue;
    }
    if (is_over || tensor.sizes[i - before] != size || tensor.strides[i - before] != source.period) return std::nullopt;
    source.period *= size;
  }
  return source;
}

// The operator that x ** number is.
std::optional<Elementwise> power_of(const Operand& exponent) {
  static const std::map<double, Elementwise> all{{-1, Elementwise::reciprocal}, {-0.5, Elementwise::rsqrt}, {0.5, Elementwise::sqrt},
                                                 {1, Elementwise::to},          {2, Elementwise::square},   {3, Elementwise::cube}};
  const auto number = number_of(exponent);
  const auto found = number ? all.find(*number) : all.end();
  return found == all.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Elementwise> elementwise_of(const Instruction& instruction) {
  static const std::map<std::string, Elementwise> all{
      {"aten::add.Tensor", Elementwise::add},
      {"aten::add.Scalar", Elementwise::add},
      {"aten::sub.Tensor", Elementwise::sub},
      {"aten::sub.Scalar", Elementwise::sub},
      {"aten::mul.Tensor", Elementwise::mul},
      {"aten::mul.Scalar", Elementwise::mul},
      {"aten::div.Tensor", Elementwise::div},
      {"aten::div.Scalar", Elementwise::div},
      {"aten::neg", Elementwise::neg},
      {"aten::abs", Elementwise::abs},
      {"aten::sqrt", Elementwise::sqrt},
      {"aten::rsqrt", Elementwise::rsqrt},
      {"aten::reciprocal", Elementwise::reciprocal},
      {"aten::relu", Elementwise::relu},
      {"aten::threshold_backward", Elementwise::relu_backward},
      {"aten::_to_copy", Elementwise::to},
      {"aten::exp", Elementwise::exp},
      {"aten::sigmoid", Elementwise::sigmoid},
      {"aten::sigmoid_backward", Elementwise::sigmoid_backward},
      {"aten::silu", Elementwise::silu},
      {"aten::silu_backward", Elementwise::silu_backward},
      {"aten::gelu", Elementwise::gelu},
      {"aten::gelu_backward", Elementwise::gelu_backward},
  };
  const std::string name = instruction.name();
  if (name == "aten::pow.Tensor_Scalar") return power_of(instruction.operands[1]);
  const auto found = all.find(name);
  if (found == all.end()) return std::nullopt;
  Elementwise op = found->second;
  const bool is_gelu = op == Elementwise::gelu || op == Elementwise::gelu_backward;
  if (is_gelu && instruction.operands.back().constant.toStringRef() == "tanh") {
    op = op == Elementwise::gelu ? Elementwise::gelu_tanh : Elementwise::gelu_tanh_backward;
  }
  const bool is_sum = op == Elementwise::add || op == Elementwise::sub;
  if (is_sum && number_of(instruction.operands.back()) != 1.0) return std::nullopt;  // the factor of the second
  if (op == Elementwise::relu_backward && number_of(instruction.operands[2]) != 0.0) return std::nullopt;
  return op;
}

// Whether libtorch rounds as the chain does. Its root of float32 is a library's, not always the nearest; in bfloat16 it rounds between two
// operations of its own, or does in some elements.
bool has_same_bits(Elementwise op, ChainType type) {
  if (is_elementary(op)) return false;
  if (op == Elementwise::sqrt) return type == ChainType::bfloat16;
  return type == ChainType::float32 || (op != Elementwise::rsqrt && op != Elementwise::cube);
}

// Joins the elementwise operators of one half.
class Chaining {
 public:
  Chaining(const Program& program, const std::vector<int32_t>& readers, bool fast)
      : geometries_(program.geometries), readers_(readers), fast_(fast) {}

  std::vector<Instruction> of(std::vector<Instruction> instructions) {
    for (Instruction& instruction : instructions) {
      const auto op = chainable(instruction);
      if (op) {
        if (!run_.empty() && numel_of(result_of(instruction)) != numel_of(result_of(run_[0].second))) close();
        run_.emplace_back(*op, std::move(instruction));
      } else if (instruction.kind == Instruction::Kind::view && !is_of_run(instruction.operands[0].slots[0])) {
        made_.push_back(std::move(instruction));  // another look at what was there before the run
      } else {
        close();
        made_.push_back(std::move(instruction));
      }
    }
    close();
    return std::move(made_);
  }

 private:
  const Geometry& result_of(const Instruction& instruction) const { return geometries_[instruction.results[0]]; }

  bool is_of_run(Slot slot) const {
    return std::any_of(run_.begin(), run_.end(), [&](const auto& each) { return each.second.results[0] == slot; });
  }

  std::optional<Elementwise> chainable(const Instruction& instruction) const {
    if (instruction.kind != Instruction::Kind::atomic || instruction.lists || instruction.results.size() != 1) return std::nullopt;
    const auto op = elementwise_of(instruction);
    if (!op || instruction.results[0] == kNoSlot) return std::nullopt;
    const Geometry& result = result_of(instruction);
    const auto type = type_of(result);
    if (!type || !is_dense(result) || result.offset != 0) return std::nullopt;
    if (!fast_ && !has_same_bits(*op, *type)) return std::nullopt;
    for (int i = 0; i < elementwise_facts(*op).arity; i++) {
      const Operand& operand = instruction.operands[static_cast<size_t>(i)];
      if (operand.kind != Operand::Kind::tensor) {
        if (i == 0 || !number_of(operand)) return std::nullopt;
        continue;
      }
      const auto source = operand.slots[0] == kNoSlot ? std::nullopt : source_in(geometries_[operand.slots[0]], result);
      // One element of another dtype is a number to libtorch, rounded in its own way.
      const bool fits = source && (source->type == *type || *type == ChainType::float32 || *op == Elementwise::to);
      if (!fits) return std::nullopt;
    }
    return op;
  }

  void close() {
    if (run_.empty()) return;
    Chain chain;
    Operand sources{Operand::Kind::tensors, {}, {}, 0};
    Instruction joined;
    joined.kind = Instruction::Kind::chain;
    chain.numel = numel_of(result_of(run_[0].second));
    const auto add_source = [&](Slot slot, const ChainSource& source) {
      for (size_t i = 0; i < chain.sources.size(); i++) {
        const ChainSource& known = chain.sources[i];
        if (slot != kNoSlot && sources.slots[i] == slot && known.period == source.period && known.hold == source.hold) {
          return static_cast<int32_t>(i);
        }
      }
      sources.slots.push_back(slot);
      chain.sources.push_back(source);
      return static_cast<int32_t>(chain.sources.size() - 1);
    };
    // Sources first: steps are counted behind them.
    std::vector<std::array<int32_t, 2>> read;  // of each step: a source, or -1 - a step
    std::map<Slot, int32_t> within;            // reads by the run itself
    for (size_t i = 0; i < run_.size(); i++) {
      const auto& [op, instruction] = run_[i];
      const auto value_of = [&, &op = op, &instruction = instruction](const Operand& operand) {
        if (operand.kind != Operand::Kind::tensor) return add_source(kNoSlot, {scalar_of(op, instruction, operand), 0});
        for (size_t j = i; j-- > 0;) {
          if (run_[j].second.results[0] == operand.slots[0]) return -1 - static_cast<int32_t>(j);
        }
        return add_source(operand.slots[0], *source_in(geometries_[operand.slots[0]], result_of(instruction)));
      };
      const int32_t one = value_of(instruction.operands[0]);
      read.push_back({one, elementwise_facts(op).arity == 1 ? one : value_of(instruction.operands[1])});
      each_read(instruction, [&](Slot slot) { within[slot]++; });
    }
    std::vector<size_t> last_read(run_.size());
    for (size_t i = 0; i < run_.size(); i++) {
      last_read[i] = i;
      for (const int32_t value : read[i]) {
        if (value < 0) last_read[static_cast<size_t>(-1 - value)] = i;
      }
    }
    const auto num_sources = static_cast<int32_t>(chain.sources.size());
    const auto index_of = [&](int32_t value) { return value < 0 ? num_sources - 1 - value : value; };
    std::vector<int32_t> free;
    for (size_t i = 0; i < run_.size(); i++) {
      ChainStep step{run_[i].first, index_of(read[i][0]), index_of(read[i][1])};
      const Slot result = run_[i].second.results[0];
      const bool is_output = readers_[result] > within[result];
      if (is_output || !fast_) step.type = *type_of(geometries_[result]);
      if (is_output) {
        joined.results.push_back(result);
      } else {
        if (free.empty()) free.push_back(chain.num_scratch++);
        step.scratch = free.back();
        free.pop_back();
      }
      chain.steps.push_back(step);
      // A tile is free again behind its last reader.
      for (size_t j = 0; j <= i; j++) {
        if (last_read[j] == i && chain.steps[j].scratch >= 0) free.push_back(chain.steps[j].scratch);
      }
    }
    joined.operands.push_back(std::move(sources));
    joined.chain = std::make_shared<const Chain>(std::move(chain));
    made_.push_back(std::move(joined));
    run_.clear();
  }

  // Libtorch rounds a number that it adds to bfloat16, not one that it multiplies or divides by.
  float scalar_of(Elementwise op, const Instruction& instruction, const Operand& operand) const {
    const auto number = static_cast<float>(*number_of(operand));
    const bool rounds = !fast_ && *type_of(result_of(instruction)) == ChainType::bfloat16;
    return rounds && (op == Elementwise::add || op == Elementwise::sub) ? static_cast<float>(c10::BFloat16(number)) : number;
  }

  const std::vector<Geometry>& geometries_;
  const std::vector<int32_t>& readers_;
  const bool fast_;
  std::vector<std::pair<Elementwise, Instruction>> run_;
  std::vector<Instruction> made_;
};

}  // namespace

void Program::join_elementwise(bool fast) {
  const std::vector<int32_t> readers = count_readers();
  forwards = Chaining(*this, readers, fast).of(std::move(forwards));
  backwards = Chaining(*this, readers, fast).of(std::move(backwards));
}

}  // namespace troupe
