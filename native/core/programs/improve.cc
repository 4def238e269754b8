// Makes a recorded program cheaper and keeps its bits: values that no call changes are computed once, and elementwise operators that
// follow each other become one pass.
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/invariance.h"
#include "core/programs/float32_products.h"
#include "core/programs/program.h"

namespace troupe {
namespace {

bool is_plain(const Geometry& geometry) { return geometry.dtype == at::kFloat && is_dense(geometry); }

// Whether a tensor of these sizes is repeated along the first dimensions of the other; one element always is.
bool repeats_in(const Geometry& small, const Geometry& large) {
  size_t begin = 0;
  while (begin < small.sizes.size() && small.sizes[begin] == 1) begin++;
  const size_t length = small.sizes.size() - begin;
  return length <= large.sizes.size() &&
         std::equal(small.sizes.begin() + static_cast<int64_t>(begin), small.sizes.end(), large.sizes.end() - static_cast<int64_t>(length));
}

std::optional<float> number_of(const Operand& operand) {
  if (operand.kind != Operand::Kind::constant) return std::nullopt;
  const c10::IValue& value = operand.constant;
  if (value.isTensor() && value.toTensor().defined()) return static_cast<float>(value.toTensor().item().toDouble());
  if (value.isDouble()) return static_cast<float>(value.toDouble());
  if (value.isInt()) return static_cast<float>(value.toInt());
  return std::nullopt;
}

std::optional<Elementwise> elementwise_of(const std::string& name) {
  static const std::map<std::string, Elementwise> all{
      {"aten::add.Tensor", Elementwise::add},      {"aten::add.Scalar", Elementwise::add},      {"aten::sub.Tensor", Elementwise::subtract},
      {"aten::sub.Scalar", Elementwise::subtract}, {"aten::mul.Tensor", Elementwise::multiply}, {"aten::mul.Scalar", Elementwise::multiply},
      {"aten::div.Tensor", Elementwise::divide},   {"aten::div.Scalar", Elementwise::divide},   {"aten::neg", Elementwise::negate}};
  const auto found = all.find(name);
  return found == all.end() ? std::nullopt : std::optional(found->second);
}

// Joins the elementwise operators of one half.
class Chaining {
 public:
  Chaining(const std::vector<Geometry>& geometries, std::vector<int32_t>& readers) : geometries_(geometries), readers_(readers) {}

  std::vector<Instruction> of(std::vector<Instruction> instructions) {
    for (Instruction& instruction : instructions) {
      const auto op = chainable(instruction);
      if (op && (run_.empty() || numel_of(geometries_[instruction.results[0]]) == numel_of(geometries_[run_[0].second.results[0]]))) {
        run_.emplace_back(*op, std::move(instruction));
      } else if (op) {
        close();
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
  bool is_of_run(Slot slot) const {
    return std::any_of(run_.begin(), run_.end(), [&](const auto& each) { return each.second.results[0] == slot; });
  }

  std::optional<Elementwise> chainable(const Instruction& instruction) const {
    if (instruction.kind != Instruction::Kind::atomic || instruction.lists || instruction.results.size() != 1) return std::nullopt;
    const Slot result = instruction.results[0];
    const auto op = elementwise_of(instruction.name());
    if (!op || result == kNoSlot || !is_plain(geometries_[result]) || geometries_[result].offset != 0) return std::nullopt;
    const bool is_sum = *op == Elementwise::add || *op == Elementwise::subtract;
    if (is_sum && number_of(instruction.operands.back()) != 1.0f) return std::nullopt;  // the factor of the second
    const size_t count = *op == Elementwise::negate ? 1 : 2;
    for (size_t i = 0; i < count; i++) {
      const Operand& operand = instruction.operands[i];
      if (operand.kind != Operand::Kind::tensor) {
        if (i == 0 || !number_of(operand)) return std::nullopt;
        continue;
      }
      const Slot slot = operand.slots[0];
      if (slot == kNoSlot || !is_plain(geometries_[slot]) || !repeats_in(geometries_[slot], geometries_[result])) return std::nullopt;
    }
    return op;
  }

  void close() {
    if (run_.empty()) return;
    auto chain = std::make_shared<Chain>();
    Operand sources{Operand::Kind::tensors, {}, {}, 0};
    Instruction joined;
    joined.kind = Instruction::Kind::chain;
    chain->numel = numel_of(geometries_[run_[0].second.results[0]]);
    const auto source_of = [&](const Operand& operand) {
      ChainSource source;
      const Slot slot = operand.kind == Operand::Kind::tensor ? operand.slots[0] : kNoSlot;
      if (slot == kNoSlot) source.scalar = *number_of(operand);
      else source.period = numel_of(geometries_[slot]);
      for (size_t i = 0; i < chain->sources.size(); i++) {
        if (sources.slots[i] == slot && chain->sources[i].scalar == source.scalar && slot != kNoSlot) return static_cast<int32_t>(i);
      }
      sources.slots.push_back(slot);
      chain->sources.push_back(source);
      return static_cast<int32_t>(chain->sources.size() - 1);
    };
    // Sources first: steps are counted behind them.
    std::vector<std::pair<int32_t, int32_t>> read;  // of each step: a source, or -1 - a step
    const auto value_of = [&](const Operand& operand, size_t before) {
      for (size_t i = before; i-- > 0;) {
        if (operand.kind == Operand::Kind::tensor && run_[i].second.results[0] == operand.slots[0]) return -1 - static_cast<int32_t>(i);
      }
      return source_of(operand);
    };
    std::map<Slot, int32_t> within;  // reads by the run itself
    for (size_t i = 0; i < run_.size(); i++) {
      const auto& [op, instruction] = run_[i];
      const int32_t one = value_of(instruction.operands[0], i);
      read.emplace_back(one, op == Elementwise::negate ? one : value_of(instruction.operands[1], i));
      each_read(instruction, [&](Slot slot) { within[slot]++; });
    }
    std::vector<size_t> last_read(run_.size(), 0);
    for (size_t i = 0; i < run_.size(); i++) {
      for (const int32_t value : {read[i].first, read[i].second}) {
        if (value < 0) last_read[static_cast<size_t>(-1 - value)] = i;
      }
    }
    const auto num_sources = static_cast<int32_t>(chain->sources.size());
    std::vector<int32_t> free;
    for (size_t i = 0; i < run_.size(); i++) {
      const auto value = [&](int32_t one) { return one < 0 ? num_sources - 1 - one : one; };
      ChainStep step{run_[i].first, value(read[i].first), value(read[i].second), -1};
      const Slot result = run_[i].second.results[0];
      if (readers_[result] > within[result]) {
        joined.results.push_back(result);
      } else if (free.empty()) {
        step.scratch = chain->num_scratch++;
      } else {
        step.scratch = free.back();
        free.pop_back();
      }
      chain->steps.push_back(step);
      // A tile is free again behind its last reader; elementwise, a step may write where it reads.
      for (size_t j = 0; j <= i; j++) {
        if (last_read[j] == i && j != i && chain->steps[j].scratch >= 0) free.push_back(chain->steps[j].scratch);
      }
    }
    joined.operands.push_back(std::move(sources));
    joined.chain = std::move(chain);
    made_.push_back(std::move(joined));
    run_.clear();
  }

  const std::vector<Geometry>& geometries_;
  const std::vector<int32_t>& readers_;
  std::vector<std::pair<Elementwise, Instruction>> run_;
  std::vector<Instruction> made_;
};

}  // namespace

void Program::fold_constants() {
  std::vector<Slot> base(num_slots);
  for (Slot slot = 0; slot < num_slots; slot++) base[slot] = slot;
  const auto each_view = [&](const std::vector<Instruction>& half) {
    for (const Instruction& instruction : half) {
      if (instruction.kind == Instruction::Kind::view) base[instruction.results[0]] = base[instruction.operands[0].slots[0]];
    }
  };
  each_view(forwards);
  each_view(backwards);
  std::map<Slot, at::Tensor> known;
  for (auto& [slot, value] : constants) {
    if (!written[slot]) known.emplace(slot, value);
  }
  constants.clear();
  // Results belong to the caller.
  for (const std::vector<Slot>* const given : {&results, &gradients}) {
    for (const Slot slot : *given) {
      if (slot != kNoSlot && known.count(base[slot]) != 0) return;
    }
  }
  for (std::vector<Instruction>* const half : {&forwards, &backwards}) {
    std::vector<Instruction> rest;
    for (Instruction& instruction : *half) {
      const bool folds = instruction.results.size() == 1 && known.count(instruction.results[0]) != 0;
      if (!folds) rest.push_back(std::move(instruction));
    }
    *half = std::move(rest);
  }
  std::vector<bool> read(num_slots, false);
  for (const std::vector<Instruction>* const half : {&forwards, &backwards}) {
    for (const Instruction& instruction : *half) each_read(instruction, [&](Slot slot) { read[slot] = true; });
  }
  for (auto& [slot, value] : known) {
    if (read[slot]) constants.emplace_back(slot, std::move(value));
  }
}

std::vector<int32_t> Program::count_readers() const {
  std::vector<int32_t> readers(num_slots, 0);
  for (const std::vector<Instruction>* const half : {&forwards, &backwards}) {
    for (const Instruction& instruction : *half) each_read(instruction, [&](Slot slot) { readers[slot]++; });
  }
  for (const std::vector<Slot>* const given : {&results, &gradients}) {
    for (const Slot slot : *given) {
      if (slot != kNoSlot) readers[slot]++;
    }
  }
  return readers;
}

void Program::join_elementwise() {
  std::vector<int32_t> readers = count_readers();
  forwards = Chaining(geometries, readers).of(std::move(forwards));
  backwards = Chaining(geometries, readers).of(std::move(backwards));
}

void Program::plan_memory() {
  lasts.assign(num_slots, false);
  // From the end: a slot's first sight is its last use.
  const auto mark = [&](std::vector<Instruction>& instructions, std::vector<bool>& seen) {
    for (auto instruction = instructions.rbegin(); instruction != instructions.rend(); ++instruction) {
      instruction->last_uses.clear();
      const auto last = [&](Slot slot) {
        if (slot == kNoSlot || seen[slot]) return;
        seen[slot] = true;
        instruction->last_uses.push_back(slot);
      };
      each_read(*instruction, last);
      for (const Slot slot : instruction->results) last(slot);
    }
  };
  std::vector<bool> walked;
  for (auto instruction = backwards.rbegin(); instruction != backwards.rend(); ++instruction) {
    if (instruction->kind != Instruction::Kind::gradient) continue;
    walked.resize(std::max(walked.size(), static_cast<size_t>(instruction->backward) + 1));
    instruction->walks_again = walked[instruction->backward];
    walked[instruction->backward] = true;
  }
  std::vector<bool> seen(num_slots, false);
  for (const Slot slot : gradients) {
    if (slot != kNoSlot) seen[slot] = lasts[slot] = true;
  }
  mark(backwards, seen);
  for (const Instruction& instruction : backwards) each_read(instruction, [&](Slot slot) { lasts[slot] = true; });
  seen = lasts;
  for (const Slot slot : results) seen[slot] = true;
  mark(forwards, seen);
}

// Another thread costs 10 to 50 us: that of waking it, and of its waiting for more. No operator here takes much longer, and none has
// other bits by itself: libtorch alone sums numbers in pieces, one a thread, where only one is left.
bool Program::is_small() const {
  constexpr int64_t kMostElements = int64_t{1} << 18, kMostMultiplications = int64_t{1} << 24, kMostOfASum = 32768;
  if (!device.is_cpu()) return false;
  const auto is_within = [&](Slot slot) {
    const Geometry& geometry = geometries[slot];
    const bool is_narrow = geometry.dtype == at::kBFloat16 || geometry.dtype == at::kHalf;
    return !is_narrow && numel_of(geometry) <= kMostElements;
  };
  const auto is_of_one = [&](const Instruction& instruction) {
    bool within = true;
    int64_t most = 0;
    std::vector<const Geometry*> matrices;
    each_read(instruction, [&](Slot slot) {
      within = within && is_within(slot);
      most = std::max(most, numel_of(geometries[slot]));
      if (geometries[slot].sizes.size() >= 2) matrices.push_back(&geometries[slot]);
    });
    for (const Slot slot : instruction.results) within = within && (slot == kNoSlot || is_within(slot));
    if (!within || instruction.kind == Instruction::Kind::view || instruction.kind == Instruction::Kind::chain) return within;
    const bool sums_all = instruction.results.size() == 1 && instruction.results[0] != kNoSlot &&
                          numel_of(geometries[instruction.results[0]]) == 1 && most >= kMostOfASum;
    if (sums_all) return false;
    const std::string name = instruction.name();
    if (instruction.kind == Instruction::Kind::heads) {
      const GridSizes& sizes = instruction.heads->sizes;
      return sizes.outer * sizes.inner * sizes.rows * sizes.terms * sizes.columns <= kMostMultiplications;
    }
    if (name == "aten::mm" || name == "aten::addmm" || name == "aten::bmm") {
      const Geometry &a = *matrices[matrices.size() - 2], &b = *matrices.back();
      const int64_t rows = a.sizes[a.sizes.size() - 2], inner = a.sizes.back(), columns = b.sizes.back();
      const int64_t batches = name == "aten::bmm" ? a.sizes[0] : 1;
      return batches * rows * inner * columns <= kMostMultiplications && fits_tiles(rows, inner, columns);
    }
    // Attention multiplies each position by each other.
    const bool attends = !matrices.empty() && matrices[0]->sizes.size() == 4;
    return !attends || numel_of(*matrices[0]) * matrices[0]->sizes[2] <= kMostMultiplications;
  };
  return std::all_of(forwards.begin(), forwards.end(), is_of_one) && std::all_of(backwards.begin(), backwards.end(), is_of_one);
}

void Program::improve(bool fast) {
  fold_constants();
  if (fast && device.is_cpu()) fuse_products();
  // Products of an invariant forward sum in orders of their own.
  if (device.is_cpu() && !is_invariant()) join_heads();
  run_on_device = chain_runner(device);
  if (device.is_cpu() || run_on_device != nullptr) join_elementwise();
  plan_memory();
  find_placed();
  on_one_thread = is_small();
}

}  // namespace troupe
