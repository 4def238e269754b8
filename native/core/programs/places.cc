// Gradients of weights that are products, written where their block collects gradients: nothing copies them afterwards.
#include <algorithm>

#include "core/programs/program.h"

namespace troupe {
namespace {

// float32 products are left out: what collects them makes -0 to 0, and the product of bfloat16 numbers begins at 0.
bool is_product(const Instruction& instruction) {
  if (instruction.kind == Instruction::Kind::product) return true;
  return instruction.kind == Instruction::Kind::atomic && instruction.name() == "aten::mm";
}

}  // namespace

at::Tensor Played::place_of(Slot slot) const {
  const auto found = std::find_if(places.begin(), places.end(), [&](const auto& each) { return each.first == slot; });
  return found == places.end() ? at::Tensor() : found->second;
}

void Program::find_placed() {
  placed.assign(gradients.size(), kNoSlot);
  if (!device.is_cpu()) return;
  for (size_t i = 0; i < gradients.size(); i++) {
    Slot slot = gradients[i];
    if (slot == kNoSlot) continue;
    for (auto instruction = backwards.rbegin(); instruction != backwards.rend(); ++instruction) {
      if (instruction->results.empty() || instruction->results[0] != slot) continue;
      const Geometry& geometry = geometries[slot];
      if (!is_dense(geometry) || geometry.dtype != at::kBFloat16 || written[slot]) break;
      if (instruction->kind == Instruction::Kind::view) {
        const Slot base = instruction->operands[0].slots[0];
        if (instruction->geometry.offset != 0 || numel_of(geometries[base]) != numel_of(geometry)) break;
        slot = base;
        continue;
      }
      const bool is_taken = std::find(placed.begin(), placed.end(), slot) != placed.end();
      if (is_product(*instruction) && !is_taken) placed[i] = slot;
      break;
    }
  }
}

void Program::place_gradients(const std::vector<GradientPlace>& given, Played& played) const {
  for (const GradientPlace& place : given) {
    const Slot slot = place.gradient < placed.size() ? placed[place.gradient] : kNoSlot;
    if (slot == kNoSlot || place.flat.scalar_type() != geometries[slot].dtype) continue;
    const Geometry& geometry = geometries[slot];
    played.places.emplace_back(slot, place.flat.narrow(0, place.begin, numel_of(geometry)).view(geometry.sizes));
  }
}

}  // namespace troupe
