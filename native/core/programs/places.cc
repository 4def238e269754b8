// Gradients of weights that are products, written where their block collects gradients, or added there to those of earlier micro-batches:
// nothing copies them afterwards.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/mm.h>

#include <algorithm>

#include "core/programs/fuse.h"
#include "core/programs/program.h"

namespace troupe {
namespace {

// float32 products are left out: what collects them makes -0 to 0, and the product of bfloat16 numbers begins at 0.
bool is_product(const Instruction& instruction) {
  if (instruction.kind == Instruction::Kind::product) return true;
  return instruction.kind == Instruction::Kind::atomic && instruction.name() == "aten::mm";
}

// A product that something follows cannot be: the sum would be changed by it too.
bool can_be_added(const Instruction& instruction) {
  return instruction.kind == Instruction::Kind::product ? instruction.product->is_bare() : is_product(instruction);
}

}  // namespace

at::Tensor Played::place_of(Slot slot) const {
  const auto found = std::find_if(places.begin(), places.end(), [&](const auto& each) { return each.first == slot; });
  return found == places.end() ? at::Tensor() : found->second;
}

void Program::find_placed() {
  placed.assign(gradients.size(), kNoSlot);
  added.assign(gradients.size(), false);
  const std::vector<int32_t> readers = count_readers();
  for (size_t i = 0; i < gradients.size(); i++) {
    Slot slot = gradients[i];
    if (slot == kNoSlot) continue;
    bool is_alone = readers[slot] == 1;
    for (auto instruction = backwards.rbegin(); instruction != backwards.rend(); ++instruction) {
      if (instruction->results.empty() || instruction->results[0] != slot) continue;
      const Geometry& geometry = geometries[slot];
      if (!is_dense(geometry) || geometry.dtype != at::kBFloat16 || written[slot]) break;
      if (instruction->kind == Instruction::Kind::view) {
        const Slot base = instruction->operands[0].slots[0];
        if (instruction->geometry.offset != 0 || numel_of(geometries[base]) != numel_of(geometry)) break;
        slot = base;
        is_alone = is_alone && readers[base] == 1;
        continue;
      }
      const bool is_taken = std::find(placed.begin(), placed.end(), slot) != placed.end();
      if (is_product(*instruction) && !is_taken) placed[i] = slot;
      added[i] = placed[i] != kNoSlot && is_alone && can_be_added(*instruction);
      break;
    }
  }
}

void Program::place_gradients(const std::vector<GradientPlace>& given, Played& played) const {
  for (const GradientPlace& place : given) {
    const Slot slot = place.gradient < placed.size() ? placed[place.gradient] : kNoSlot;
    if (slot == kNoSlot) continue;
    const Geometry& geometry = geometries[slot];
    const at::ScalarType dtype = place.flat.scalar_type();
    // Which product a device's library takes depends on where its result lies; bits of a sum are others anyway.
    const bool fits = dtype == geometry.dtype ? device.is_cpu() : dtype == at::kFloat && added[place.gradient];
    if (!fits) continue;
    played.places.emplace_back(slot, place.flat.narrow(0, place.begin, numel_of(geometry)).view(geometry.sizes));
  }
}

void multiply_into(at::Tensor place, const at::Tensor& a, const at::Tensor& b) {
  if (place.scalar_type() == a.scalar_type()) {
    at::mm_out(place, a, b);
    return;
  }
  static const auto add = c10::Dispatcher::singleton()
                              .findSchemaOrThrow("troupe::add_product_", "")
                              .typed<void(at::Tensor, const at::Tensor&, const at::Tensor&)>();
  add.call(place, a, b);
}

}  // namespace troupe
