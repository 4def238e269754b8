// Improves a recorded program: computes constants once, leaves out what nobody reads, finds last uses, and chooses passes and threads.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/invariance.h"
#include "core/programs/float32_products.h"
#include "core/programs/program.h"

namespace troupe {
namespace {

// Whether an instruction does more than compute its results: it writes in place, other ranks may wait for it, or it leaves a backward.
bool has_effects(const Instruction& instruction) {
  using Kind = Instruction::Kind;
  if (instruction.kind == Kind::own || instruction.kind == Kind::gradient) return true;
  if (instruction.kind == Kind::product && instruction.num_backwards > 0) return true;
  return std::find(instruction.results.begin(), instruction.results.end(), kNoSlot) != instruction.results.end();
}

// The backward of a product's dropout can be left without the product.
bool leaves_dropout_alone(const Instruction& instruction) {
  return instruction.kind == Instruction::Kind::product && instruction.product->has_dropout && !instruction.product->gelu;
}

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

void Program::drop_unread() {
  std::vector<bool> read(num_slots, false);
  const auto mark = [&](Slot slot) {
    if (slot != kNoSlot) read[slot] = true;
  };
  for (const std::vector<Slot>* const given : {&results, &gradients}) std::for_each(given->begin(), given->end(), mark);
  for (std::vector<Instruction>* const half : {&backwards, &forwards}) {
    for (size_t i = half->size(); i-- > 0;) {
      const Instruction& instruction = (*half)[i];
      const auto is_read = [&](Slot slot) { return read[slot]; };
      if (has_effects(instruction) || std::any_of(instruction.results.begin(), instruction.results.end(), is_read)) {
        each_read(instruction, mark);
      } else {
        half->erase(half->begin() + static_cast<int64_t>(i));
      }
    }
  }
}

void Program::mark_walks() {
  std::vector<bool> walked;
  for (auto instruction = backwards.rbegin(); instruction != backwards.rend(); ++instruction) {
    if (instruction->kind != Instruction::Kind::gradient) continue;
    walked.resize(std::max(walked.size(), static_cast<size_t>(instruction->backward) + 1));
    instruction->walks_again = walked[instruction->backward];
    walked[instruction->backward] = true;
  }
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
  std::vector<bool> seen(num_slots, false);
  for (const Slot slot : gradients) {
    if (slot != kNoSlot) seen[slot] = lasts[slot] = true;
  }
  mark(backwards, seen);
  for (const Instruction& instruction : backwards) each_read(instruction, [&](Slot slot) { lasts[slot] = true; });
  std::vector<bool> needed = lasts;
  for (auto instruction = forwards.rbegin(); instruction != forwards.rend(); ++instruction) {
    const auto is_needed = [&](Slot slot) { return needed[slot]; };
    instruction->for_results =
        (!has_effects(*instruction) || leaves_dropout_alone(*instruction)) && std::none_of(instruction->results.begin(), instruction->results.end(), is_needed);
    if (!instruction->for_results) each_read(*instruction, [&](Slot slot) { needed[slot] = true; });
  }
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
      return batches * rows * inner * columns <= kMostMultiplications && has_known_sums(rows, inner, columns);
    }
    // Attention multiplies each position by each other.
    const bool attends = !matrices.empty() && matrices[0]->sizes.size() == 4;
    return !attends || numel_of(*matrices[0]) * matrices[0]->sizes[2] <= kMostMultiplications;
  };
  return std::all_of(forwards.begin(), forwards.end(), is_of_one) && std::all_of(backwards.begin(), backwards.end(), is_of_one);
}

void Program::improve(bool fast) {
  fold_constants();
  drop_unread();
  mark_walks();
  if (fast && device.is_cpu()) fuse_products();
  // Products of an invariant forward sum in orders of their own.
  if (device.is_cpu() && !is_invariant()) join_heads();
  drop_unread();
  run_on_device = chain_runner(device);
  if (device.is_cpu() || run_on_device != nullptr) join_elementwise(fast);
  plan_memory();
  find_placed();
  on_one_thread = is_small();
}

}  // namespace troupe
