// Finds elementwise operators that follow each other in a recorded program, in `fast` with sums, means and maxima of rows, and makes one
// pass of them.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/programs/program.h"

namespace troupe {
namespace {

bool is_narrow_type(at::ScalarType dtype) { return dtype == at::kBFloat16 || dtype == at::kHalf; }

std::optional<ChainType> type_of(const Geometry& geometry) {
  if (geometry.dtype == at::kFloat) return ChainType::float32;
  if (is_narrow_type(geometry.dtype)) return ChainType::narrow;
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

constexpr const char* kPower = "aten::pow.Tensor_Scalar";

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
      {"aten::log", Elementwise::log},
      {"aten::tanh", Elementwise::tanh},
      {"aten::tanh_backward", Elementwise::tanh_backward},
      {"aten::sigmoid", Elementwise::sigmoid},
      {"aten::sigmoid_backward", Elementwise::sigmoid_backward},
      {"aten::silu", Elementwise::silu},
      {"aten::silu_backward", Elementwise::silu_backward},
      {"aten::gelu", Elementwise::gelu},
      {"aten::gelu_backward", Elementwise::gelu_backward},
  };
  const std::string name = instruction.name();
  if (name == kPower) return power_of(instruction.operands[1]);
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

// Whether libtorch gives these bits. On the CPU it does not round all roots of float32 to the nearest, and rounds between two operations in
// reciprocal roots and cubes of narrow numbers. Powers of float16 are the C library's, where the root of -0 is 0. A GPU has its own
// reciprocal root and powers but squares, and multiplies by the reciprocal of a number that it divides by.
bool has_same_bits(const Instruction& instruction, Elementwise op, at::ScalarType dtype, bool is_gpu) {
  const bool is_power = instruction.name() == kPower;
  if (is_elementary(op)) return false;
  if (is_gpu && (op == Elementwise::rsqrt || (is_power && op != Elementwise::square))) return false;
  if (is_gpu && op == Elementwise::div && number_of(instruction.operands[1])) return false;
  if (op == Elementwise::sqrt) return dtype == at::kBFloat16 || (dtype == at::kHalf && !is_power);
  return dtype == at::kFloat || (op != Elementwise::rsqrt && op != Elementwise::cube);
}

// A row stays in the second-level cache, with those that come of it.
constexpr int64_t kMostWidth = 8192;

// An operator that is part of a chain.
struct Link {
  ChainWay way;
  Elementwise op;
  bool is_row;
  Instruction instruction;

  Slot result() const { return instruction.results[0]; }
};

// Makes the steps of a chain from its links.
class ChainMaker {
 public:
  ChainMaker(const Program& program, const std::vector<int32_t>& readers, bool fast)
      : geometries_(program.geometries), readers_(readers), fast_(fast), is_gpu_(program.device.is_cuda()) {}

  // The chain, and behind it the views that something else reads.
  std::vector<Instruction> of(std::vector<Link> links, ChainNarrow narrow, int64_t numel, int64_t width) {
    chain_.narrow = narrow;
    chain_.numel = numel;
    chain_.width = width;
    const std::map<Slot, int32_t> within = reads_of(links);
    std::vector<Instruction> made(1);
    for (const Link& link : links) {
      add(link);
      const auto found = within.find(link.result());
      const bool is_read = readers_[link.result()] > (found == within.end() ? 0 : found->second);
      if (is_read && link.way == ChainWay::spread) made.push_back(link.instruction);
      else if (is_read) outputs_.insert(link.result());
    }
    finish();
    made[0].kind = Instruction::Kind::chain;
    made[0].operands.push_back(std::move(sources_));
    made[0].results = std::move(results_);
    made[0].chain = std::make_shared<const Chain>(std::move(chain_));
    return made;
  }

 private:
  // Operands: sources, or -1 - a step.
  struct Step {
    ChainStep step;
    Slot result;
    std::array<int32_t, 2> reads;
  };

  // How often the links read each other's results. A view that only they read is none any more.
  std::map<Slot, int32_t> reads_of(const std::vector<Link>& links) const {
    std::map<Slot, int32_t> within;
    for (const Link& link : links) {
      if (link.way != ChainWay::spread) each_read(link.instruction, [&](Slot slot) { within[slot]++; });
    }
    for (const Link& link : links) {
      if (link.way == ChainWay::spread && readers_[link.result()] == within[link.result()]) within[link.instruction.operands[0].slots[0]]++;
    }
    return within;
  }

  void add(const Link& link) {
    const int32_t one = value_of(link, link.instruction.operands[0]);
    const bool reads_two = link.way == ChainWay::each && elementwise_facts(link.op).arity == 2;
    const int32_t other = reads_two ? value_of(link, link.instruction.operands[1]) : one;
    ChainStep step;
    step.way = link.way;
    step.op = link.op;
    step.is_row = link.is_row;
    steps_.push_back({step, link.result(), {one, other}});
  }

  int32_t value_of(const Link& link, const Operand& operand) {
    if (operand.kind != Operand::Kind::tensor) return add_source(kNoSlot, {scalar_of(link, operand), 0, 1, ChainType::float32, link.is_row});
    const Slot slot = operand.slots[0];
    for (size_t i = steps_.size(); i-- > 0;) {
      if (steps_[i].result == slot) return link.way == ChainWay::each && steps_[i].step.is_row && !link.is_row ? spread(i) : step_at(i);
    }
    const Geometry& geometry = geometries_[slot];
    ChainSource source = *source_in(geometry, link.way == ChainWay::each ? geometries_[link.result()] : geometry);
    source.is_row = link.way == ChainWay::each && link.is_row;
    return add_source(slot, source);
  }

  static int32_t step_at(size_t index) { return -1 - static_cast<int32_t>(index); }

  // The elements that a row's number is for.
  int32_t spread(size_t row) {
    for (size_t i = row; i < steps_.size(); i++) {
      if (steps_[i].step.way == ChainWay::spread && steps_[i].reads[0] == step_at(row)) return step_at(i);
    }
    ChainStep step;
    step.way = ChainWay::spread;
    steps_.push_back({step, kNoSlot, {step_at(row), step_at(row)}});
    return step_at(steps_.size() - 1);
  }

  int32_t add_source(Slot slot, const ChainSource& source) {
    for (size_t i = 0; i < chain_.sources.size(); i++) {
      const ChainSource& known = chain_.sources[i];
      const bool is_same = known.period == source.period && known.hold == source.hold && known.is_row == source.is_row;
      if (slot != kNoSlot && sources_.slots[i] == slot && is_same) return static_cast<int32_t>(i);
    }
    sources_.slots.push_back(slot);
    chain_.sources.push_back(source);
    return static_cast<int32_t>(chain_.sources.size() - 1);
  }

  // On the CPU libtorch rounds a number that it adds to narrow ones, not one that it multiplies or divides by.
  float scalar_of(const Link& link, const Operand& operand) const {
    const auto number = static_cast<float>(*number_of(operand));
    if (fast_ || is_gpu_ || (link.op != Elementwise::add && link.op != Elementwise::sub)) return number;
    switch (geometries_[link.result()].dtype) {
      case at::kBFloat16: return static_cast<float>(c10::BFloat16(number));
      case at::kHalf: return static_cast<float>(c10::Half(number));
      default: return number;
    }
  }

  // Steps are counted behind the sources. Those that are no output get a tile, which is free again behind its last reader.
  void finish() {
    std::vector<size_t> last_read(steps_.size());
    for (size_t i = 0; i < steps_.size(); i++) {
      last_read[i] = i;
      for (const int32_t value : steps_[i].reads) {
        if (value < 0) last_read[static_cast<size_t>(-1 - value)] = i;
      }
    }
    const auto num_sources = static_cast<int32_t>(chain_.sources.size());
    const auto index_of = [&](int32_t value) { return value < 0 ? num_sources - 1 - value : value; };
    std::vector<int32_t> free;
    for (size_t i = 0; i < steps_.size(); i++) {
      ChainStep step = steps_[i].step;
      step.one = index_of(steps_[i].reads[0]);
      step.other = index_of(steps_[i].reads[1]);
      const bool is_output = outputs_.count(steps_[i].result) != 0;
      if (is_output || !fast_) step.type = *type_of(geometries_[steps_[i].result]);
      if (step.way == ChainWay::spread) step.type = chain_.steps[static_cast<size_t>(step.one - num_sources)].type;
      if (is_output) {
        results_.push_back(steps_[i].result);
      } else {
        if (free.empty()) free.push_back(chain_.num_scratch++);
        step.scratch = free.back();
        free.pop_back();
      }
      chain_.steps.push_back(step);
      for (size_t j = 0; j <= i; j++) {
        if (last_read[j] == i && chain_.steps[j].scratch >= 0) free.push_back(chain_.steps[j].scratch);
      }
    }
  }

  const std::vector<Geometry>& geometries_;
  const std::vector<int32_t>& readers_;
  const bool fast_, is_gpu_;
  Chain chain_;
  Operand sources_{Operand::Kind::tensors, {}, {}, 0};
  std::vector<Step> steps_;
  std::set<Slot> outputs_;
  std::vector<Slot> results_;
};

// Joins the elementwise operators of one half, and in `fast` what makes one number of each row.
class Chaining {
 public:
  Chaining(const Program& program, const std::vector<int32_t>& readers, bool fast)
      : program_(program), geometries_(program.geometries), readers_(readers), fast_(fast) {}

  std::vector<Instruction> of(std::vector<Instruction> instructions) {
    for (Instruction& instruction : instructions) {
      if (joins(instruction)) continue;
      if (instruction.kind == Instruction::Kind::view && find(instruction.operands[0].slots[0]) == nullptr) {
        made_.push_back(std::move(instruction));  // another look at what was there before the run
        continue;
      }
      close();
      if (!joins(instruction)) made_.push_back(std::move(instruction));
    }
    close();
    return std::move(made_);
  }

 private:
  const Geometry& result_of(const Instruction& instruction) const { return geometries_[instruction.results[0]]; }

  const Link* find(Slot slot) const {
    const auto found = std::find_if(run_.begin(), run_.end(), [&](const Link& link) { return link.result() == slot; });
    return found == run_.end() ? nullptr : &*found;
  }

  // Adds an operator to the run, if it can be part of it.
  bool joins(Instruction& instruction) { return joins_as_spread(instruction) || joins_as_reduction(instruction) || joins_as_each(instruction); }

  void add(ChainWay way, Elementwise op, bool is_row, Instruction& instruction) {
    each_dtype(instruction, [&](at::ScalarType dtype) {
      if (is_narrow_type(dtype)) narrow_ = dtype;
    });
    run_.push_back({way, op, is_row, std::move(instruction)});
  }

  template <class Body>
  void each_dtype(const Instruction& instruction, const Body& body) const {
    body(result_of(instruction).dtype);
    each_read(instruction, [&](Slot slot) { body(geometries_[slot].dtype); });
  }

  // Whether with an instruction the run has narrow numbers of one dtype at most.
  bool has_one_narrow(const Instruction& instruction) const {
    std::optional<at::ScalarType> narrow = narrow_;
    bool has_one = true;
    each_dtype(instruction, [&](at::ScalarType dtype) {
      if (!is_narrow_type(dtype)) return;
      has_one = has_one && narrow.value_or(dtype) == dtype;
      narrow = dtype;
    });
    return has_one;
  }

  bool joins_as_each(Instruction& instruction) {
    const auto op = chainable(instruction);
    if (!op || !has_one_narrow(instruction)) return false;
    const int64_t numel = numel_of(result_of(instruction));
    const bool is_row = has_rows() && result_of(instruction).sizes == row_sizes_;
    if (!run_.empty() && !is_row && (numel != numel_ || !spreads_rows(instruction))) return false;
    if (run_.empty()) numel_ = numel;
    add(ChainWay::each, *op, is_row, instruction);
    return true;
  }

  bool has_rows() const { return width_ > 1; }

  // Whether each row's number that it reads is for all of the row.
  bool spreads_rows(const Instruction& instruction) const {
    bool spreads = true;
    each_read(instruction, [&](Slot slot) {
      const Link* const link = find(slot);
      if (link != nullptr && link->is_row) spreads = spreads && is_spread(geometries_[slot], result_of(instruction));
    });
    return spreads;
  }

  bool is_spread(const Geometry& rows, const Geometry& all) const {
    const auto source = source_in(rows, all);
    return source && source->hold == width_ && source->period * width_ == numel_;
  }

  bool joins_as_spread(Instruction& instruction) {
    if (!has_rows() || instruction.kind != Instruction::Kind::view) return false;
    const Slot base = instruction.operands[0].slots[0];
    const Link* const link = find(base);
    if (link == nullptr || !link->is_row || instruction.geometry.offset != 0 || instruction.geometry.dtype != geometries_[base].dtype) return false;
    // The view itself says nothing of its elements' places: they are those that the base has in its sizes.
    const Geometry& view = result_of(instruction);
    if (view.sizes.empty() || view.strides.back() != 0 || numel_of(view) != numel_) return false;
    if (!is_spread(geometries_[base], view)) return false;
    add(ChainWay::spread, Elementwise::to, false, instruction);
    return true;
  }

  bool joins_as_reduction(Instruction& instruction) {
    const auto way = reduction_of(instruction);
    if (!way) return false;
    const Geometry& rows = geometries_[instruction.operands[0].slots[0]];
    const int64_t width = rows.sizes.back(), numel = numel_of(rows);
    const bool fits = numel == numel_ && (!has_rows() || result_of(instruction).sizes == row_sizes_);
    if (!has_one_narrow(instruction) || (!run_.empty() && !fits)) return false;
    numel_ = numel;
    width_ = width;
    row_sizes_ = result_of(instruction).sizes;
    add(*way, Elementwise::to, true, instruction);
    return true;
  }

  std::optional<ChainWay> reduction_of(const Instruction& instruction) const {
    static const std::map<std::string, ChainWay> all{
        {"aten::sum.dim_IntList", ChainWay::sum}, {"aten::mean.dim", ChainWay::mean}, {"aten::amax", ChainWay::max}};
    if (!fast_ || !has_one_result(instruction)) return std::nullopt;
    const auto found = all.find(instruction.name());
    if (found == all.end() || instruction.operands[0].slots.size() != 1 || instruction.operands[0].slots[0] == kNoSlot) return std::nullopt;
    const Geometry &from = geometries_[instruction.operands[0].slots[0]], &to = result_of(instruction);
    if (!type_of(from) || !type_of(to) || !is_dense(from) || !is_dense(to) || from.sizes.empty() || to.sizes.size() != from.sizes.size()) {
      return std::nullopt;  // without the dim that is gone, sizes do not say which it was
    }
    const int64_t width = from.sizes.back();
    const bool is_of_rows = width > 1 && width <= kMostWidth && numel_of(to) * width == numel_of(from) && to.sizes.back() == 1;
    return is_of_rows && to.offset == 0 ? std::optional(found->second) : std::nullopt;
  }

  static bool has_one_result(const Instruction& instruction) {
    return instruction.kind == Instruction::Kind::atomic && !instruction.lists && instruction.results.size() == 1 &&
           instruction.results[0] != kNoSlot;
  }

  std::optional<Elementwise> chainable(const Instruction& instruction) const {
    if (!has_one_result(instruction)) return std::nullopt;
    const auto op = elementwise_of(instruction);
    if (!op) return std::nullopt;
    const Geometry& result = result_of(instruction);
    const auto type = type_of(result);
    if (!type || !is_dense(result) || result.offset != 0) return std::nullopt;
    if (!fast_ && !has_same_bits(instruction, *op, result.dtype, program_.device.is_cuda())) return std::nullopt;
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
    const bool is_lone_reduction = run_.size() == 1 && run_[0].way != ChainWay::each;
    if (is_lone_reduction) {
      made_.push_back(std::move(run_[0].instruction));
    } else if (!run_.empty()) {
      const ChainNarrow narrow = narrow_ == at::kHalf ? ChainNarrow::float16 : ChainNarrow::bfloat16;
      for (Instruction& made : ChainMaker(program_, readers_, fast_).of(std::move(run_), narrow, numel_, width_)) made_.push_back(std::move(made));
    }
    run_.clear();
    narrow_.reset();
    width_ = 1;
  }

  const Program& program_;
  const std::vector<Geometry>& geometries_;
  const std::vector<int32_t>& readers_;
  const bool fast_;
  std::vector<Link> run_;
  std::optional<at::ScalarType> narrow_;  // of the run's numbers that are not float32
  int64_t numel_ = 0;  // of the run, without its rows' numbers
  int64_t width_ = 1;  // of its rows; 1 while it has none
  std::vector<int64_t> row_sizes_;
  std::vector<Instruction> made_;
};

}  // namespace

void Program::join_elementwise(bool fast) {
  const std::vector<int32_t> readers = count_readers();
  forwards = Chaining(*this, readers, fast).of(std::move(forwards));
  backwards = Chaining(*this, readers, fast).of(std::move(backwards));
}

}  // namespace troupe
