// Finds products of bfloat16 matrices in a recorded program, and what follows them: a bias with GELU and, in backward, their gradients;
// dropout, the addition of a residual.
#include "core/programs/fuse.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/programs/program.h"

namespace troupe {
namespace {

constexpr size_t kA = 0, kB = 1, kBias = 2, kResidual = 3, kDropout = 4;

bool is_narrow(const Geometry& geometry) { return geometry.dtype == at::kBFloat16 && is_dense(geometry); }

bool is_one(const Operand& operand) {
  if (operand.kind != Operand::Kind::constant) return false;
  return (operand.constant.isInt() && operand.constant.toInt() == 1) || (operand.constant.isDouble() && operand.constant.toDouble() == 1);
}

Slot slot_of(const Operand& operand) { return operand.kind == Operand::Kind::tensor ? operand.slots[0] : kNoSlot; }

Operand operand_of(Slot slot) { return {Operand::Kind::tensor, {}, {slot}, 0}; }

// Joins the products of one half.
class Fusing {
 public:
  Fusing(const Program& program, std::vector<int32_t> readers) : program_(program), readers_(std::move(readers)) {
    for (const std::vector<Instruction>* const half : {&program.forwards, &program.backwards}) {
      for (const Instruction& instruction : *half) left_.insert(left_.end(), instruction.num_backwards, gelu_of(instruction));
    }
  }

  std::vector<Instruction> of(std::vector<Instruction> instructions) {
    made_.clear();
    bare_.clear();
    for (Instruction& instruction : instructions) {
      (void)(becomes_product(instruction) || takes_gelu(instruction) || takes_gradient(instruction) || takes_dropout(instruction) ||
             takes_residual(instruction));
      made_.emplace_back(std::move(instruction));
    }
    std::vector<Instruction> rest;
    for (size_t i = 0; i < made_.size(); i++) {
      if (!made_[i]) continue;
      // Products that nothing follows stay the library's where those are as quick.
      const auto bare = tiles_are_quickest() ? bare_.end() : bare_.find(i);
      rest.push_back(bare == bare_.end() ? std::move(*made_[i]) : std::move(bare->second));
    }
    return rest;
  }

 private:
  const Geometry& geometry(Slot slot) const { return program_.geometries[slot]; }

  static std::optional<GeluForm> gelu_of(const Instruction& instruction) {
    if (instruction.kind != Instruction::Kind::own || instruction.name() != "troupe::bias_gelu") return std::nullopt;
    return instruction.operands[2].constant.toStringRef() == "tanh" ? GeluForm::tanh : GeluForm::exact;
  }

  bool becomes_product(Instruction& instruction) {
    if (instruction.kind != Instruction::Kind::atomic) return false;
    const bool adds = instruction.name() == "aten::addmm";
    if (!adds && instruction.name() != "aten::mm") return false;
    const Slot a = slot_of(instruction.operands[adds ? 1 : 0]), b = slot_of(instruction.operands[adds ? 2 : 1]);
    const Slot bias = adds ? slot_of(instruction.operands[0]) : kNoSlot, result = instruction.results[0];
    if (a == kNoSlot || b == kNoSlot || result == kNoSlot || !is_for_tiles(geometry(a), geometry(b))) return false;
    if (program_.written[a] || program_.written[b] || program_.written[result]) return false;
    if (!is_narrow(geometry(result))) return false;
    if (adds) {
      const bool is_row = bias != kNoSlot && is_narrow(geometry(bias)) &&
                          geometry(bias).sizes == std::vector<int64_t>{geometry(b).sizes[1]};
      if (!is_row || program_.written[bias] || !is_one(instruction.operands[3]) || !is_one(instruction.operands[4])) return false;
    }
    FusedProduct product;
    product.has_bias = adds;
    bare_.emplace(made_.size(), instruction);
    become(instruction, product, {operand_of(a), operand_of(b), operand_of(bias), operand_of(kNoSlot)});
    return true;
  }

  static bool is_for_tiles(const Geometry& a, const Geometry& b) {
    const auto has_dense_dim = [](const Geometry& matrix) {
      return matrix.dtype == at::kBFloat16 && matrix.sizes.size() == 2 && (matrix.strides[0] == 1 || matrix.strides[1] == 1);
    };
    return has_dense_dim(a) && has_dense_dim(b) && gains_by_tiles(a.sizes[0], a.sizes[1], b.sizes[1]);
  }

  static void become(Instruction& instruction, const FusedProduct& product, std::vector<Operand> operands) {
    instruction.kind = Instruction::Kind::product;
    instruction.product = std::make_shared<const FusedProduct>(product);
    instruction.operands = std::move(operands);
  }

  // The product whose numbers a slot has, if nobody else reads them, taken out of the program.
  std::optional<Instruction> take(Slot slot, bool with_bias, bool with_dropout) {
    if (slot == kNoSlot || readers_[slot] != 1) return std::nullopt;
    size_t at = maker_of(slot);
    const size_t view = at;
    if (at < made_.size() && made_[at]->kind == Instruction::Kind::view) {
      if (made_[at]->geometry.offset != 0 || !is_narrow(made_[at]->geometry)) return std::nullopt;
      const Slot base = made_[at]->operands[0].slots[0];
      if (readers_[base] != 1 || numel_of(geometry(base)) != numel_of(geometry(slot))) return std::nullopt;
      at = maker_of(base);
    }
    if (at == made_.size() || made_[at]->kind != Instruction::Kind::product) return std::nullopt;
    const FusedProduct& product = *made_[at]->product;
    if (product.gelu || product.has_residual || (product.has_bias && !with_bias)) return std::nullopt;
    if (product.has_dropout && !with_dropout) return std::nullopt;
    if (made_[at]->num_backwards > 0 && leaves_backwards_behind(at)) return std::nullopt;  // backwards are counted in order
    std::optional<Instruction> taken = std::exchange(made_[at], std::nullopt);
    made_[view].reset();
    return taken;
  }

  bool leaves_backwards_behind(size_t at) const {
    return std::any_of(made_.begin() + static_cast<int64_t>(at) + 1, made_.end(),
                       [](const std::optional<Instruction>& instruction) { return instruction && instruction->num_backwards > 0; });
  }

  size_t maker_of(Slot slot) const {
    size_t i = made_.size();
    while (i > 0 && !(made_[i - 1] && !made_[i - 1]->results.empty() && made_[i - 1]->results[0] == slot)) i--;
    return i == 0 ? made_.size() : i - 1;
  }

  bool takes_gelu(Instruction& instruction) {
    const auto gelu = gelu_of(instruction);
    if (!gelu || !is_narrow(geometry(instruction.results[0]))) return false;
    const Slot bias = slot_of(instruction.operands[1]);
    if (bias == kNoSlot || program_.written[bias]) return false;  // one for each column, as the operator has checked
    std::optional<Instruction> product = take(slot_of(instruction.operands[0]), false, false);
    if (!product) return false;
    FusedProduct fused;
    fused.has_bias = true;
    fused.gelu = gelu;
    product->operands[kBias] = operand_of(bias);
    become(instruction, fused, std::move(product->operands));
    return true;
  }

  bool takes_gradient(Instruction& instruction) {
    if (instruction.kind != Instruction::Kind::gradient || instruction.walks_again || !left_[instruction.backward]) return false;
    const Slot result = instruction.results[0];
    if (result == kNoSlot || !is_narrow(geometry(result))) return false;
    std::optional<Instruction> product = take(instruction.operands[0].slots[0], false, false);
    if (!product) return false;
    FusedProduct fused;
    fused.gelu = left_[instruction.backward];
    fused.backward = instruction.backward;
    become(instruction, fused, std::move(product->operands));
    return true;
  }

  bool takes_dropout(Instruction& instruction) {
    if (instruction.kind != Instruction::Kind::own || instruction.name() != "troupe::dropout") return false;
    const Slot dropped = slot_of(instruction.operands[0]), result = instruction.results[0];
    if (dropped == kNoSlot || result == kNoSlot || !is_narrow(geometry(result))) return false;
    const std::vector<Operand> numbers(instruction.operands.begin() + 1, instruction.operands.begin() + 5);  // p, seed, stream, offset
    const auto is_number = [](const Operand& operand) {
      return operand.kind == Operand::Kind::constant || operand.kind == Operand::Kind::late;
    };
    if (!std::all_of(numbers.begin(), numbers.end(), is_number)) return false;
    const Operand& run = instruction.operands[5];
    if (run.kind != Operand::Kind::constant || run.constant.toInt() < numel_of(geometry(result))) return false;
    std::optional<Instruction> product = take(dropped, true, false);
    if (!product) return false;
    FusedProduct fused = *product->product;
    fused.has_dropout = true;
    become(instruction, fused, std::move(product->operands));
    instruction.operands.insert(instruction.operands.end(), numbers.begin(), numbers.end());
    return true;
  }

  bool takes_residual(Instruction& instruction) {
    if (instruction.kind != Instruction::Kind::atomic || instruction.name() != "aten::add.Tensor") return false;
    if (!is_one(instruction.operands[2])) return false;
    const Slot result = instruction.results[0];
    if (result == kNoSlot || !is_narrow(geometry(result))) return false;
    for (const size_t of_product : {size_t{1}, size_t{0}}) {
      const Slot residual = slot_of(instruction.operands[1 - of_product]), added = slot_of(instruction.operands[of_product]);
      if (residual == kNoSlot || added == kNoSlot || residual == added || program_.written[residual]) continue;
      if (!is_narrow(geometry(residual)) || geometry(residual).sizes != geometry(added).sizes) continue;
      std::optional<Instruction> product = take(added, true, true);
      if (!product) continue;
      FusedProduct fused = *product->product;
      fused.has_residual = true;
      product->operands[kResidual] = operand_of(residual);
      become(instruction, fused, std::move(product->operands));
      instruction.num_backwards = product->num_backwards;
      return true;
    }
    return false;
  }

  const Program& program_;
  const std::vector<int32_t> readers_;
  std::vector<std::optional<GeluForm>> left_;  // by backward: of a bias with GELU
  std::vector<std::optional<Instruction>> made_;  // without those that are part of a later one
  std::map<size_t, Instruction> bare_;            // by place: products as they were recorded
};

}  // namespace

void Program::fuse_products() {
  if (!has_tile_products()) return;
  Fusing fusing(*this, count_readers());
  std::vector<Instruction> forward = fusing.of(forwards), backward = fusing.of(backwards);
  forwards = std::move(forward);
  backwards = std::move(backward);
}

std::string FusedProduct::name() const {
  if (backward >= 0) return "product, gradient of bias and GELU";
  return std::string("product") + (has_bias ? ", bias" : "") + (gelu ? ", GELU" : "") + (has_dropout ? ", dropout" : "") +
         (has_residual ? ", residual" : "");
}

TileDropout dropout_of(const Instruction& instruction, const Played& played) {
  const auto number = [&](size_t place) {
    const Operand& operand = instruction.operands[kDropout + place];
    return operand.kind == Operand::Kind::late ? played.late[operand.late] : operand.constant.toInt();
  };
  return {instruction.operands[kDropout].constant.toDouble(), number(1), number(2), number(3)};
}

void leave_dropout(const Instruction& instruction, Played& played) {
  played.backwards.push_back({dropout_backward_of(dropout_of(instruction, played)), {}});
}

void play_product(const Program& program, const Instruction& instruction, Played& played, bool keeps) {
  const FusedProduct& fused = *instruction.product;
  const auto given = [&](size_t place) {
    const Slot slot = instruction.operands[place].slots[0];
    return slot == kNoSlot ? at::Tensor() : played.slots[slot];
  };
  const Geometry& geometry = program.geometries[instruction.results[0]];
  const auto empty = [](at::IntArrayRef sizes, at::ScalarType dtype) -> at::Tensor {
    return at::detail::empty_cpu(sizes, at::TensorOptions(dtype));
  };
  const at::Tensor place = played.place_of(instruction.results[0]);
  const at::Tensor out = place.defined() ? place : empty(geometry.sizes, at::kBFloat16);
  TileEpilogue epilogue;
  epilogue.bias = given(kBias);
  epilogue.residual = given(kResidual);
  epilogue.gelu = fused.gelu;
  if (fused.has_dropout) epilogue.dropout = dropout_of(instruction, played);
  if (fused.backward >= 0) {
    const Played::Left left = std::move(played.backwards[fused.backward]);
    epilogue.activated = left.saved[0];
    epilogue.bias = left.saved[1];
    if (instruction.results[1] != kNoSlot) epilogue.column_sums = empty(left.saved[1].sizes(), at::kFloat);
  } else if (fused.gelu && instruction.num_backwards > 0 && keeps) {
    epilogue.product = empty(geometry.sizes, at::kBFloat16);
  }
  multiply_tiles(given(kA), given(kB), out, epilogue);
  played.slots[instruction.results[0]] = out;
  if (epilogue.column_sums.defined()) {
    played.slots[instruction.results[1]] = epilogue.column_sums.to(program.geometries[instruction.results[1]].dtype);
  }
  if (epilogue.product.defined()) {
    played.backwards.push_back({bias_gelu_backward_of(fused.gelu == GeluForm::tanh), {epilogue.product, epilogue.bias}});
  } else if (epilogue.dropout && instruction.num_backwards > 0 && keeps) {
    leave_dropout(instruction, played);
  }
}

}  // namespace troupe
