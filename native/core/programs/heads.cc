// Finds batches of float32 products whose factors or results are copied to lie side by side, and leaves the copies out: tiles read and
// write heads where they lie, with the same bits.
#include "core/programs/heads.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/programs/program.h"

namespace troupe {
namespace {

constexpr size_t kForward = 0, kBackward = 1;

// A place of an instruction in a program.
struct Place {
  size_t half = 0;
  size_t index = 0;
};

class Heads {
 public:
  explicit Heads(Program& program) : program_(program), halves_{&program.forwards, &program.backwards} {
    for (const size_t half : {kForward, kBackward}) {
      for (size_t i = 0; i < halves_[half]->size(); i++) {
        const Instruction& instruction = (*halves_[half])[i];
        for (const Slot slot : instruction.results) {
          if (slot != kNoSlot) makers_[slot] = {half, i};
        }
        each_read(instruction, [&](Slot slot) { readers_[slot].push_back({half, i}); });
      }
    }
    for (const std::vector<Slot>* const given : {&program.results, &program.gradients}) {
      for (const Slot slot : *given) given_.push_back(slot);
    }
  }

  void join() {
    for (const size_t half : {kForward, kBackward}) {
      for (size_t i = 0; i < halves_[half]->size(); i++) become_heads({half, i});
    }
  }

 private:
  // A batch of matrices [outer, inner, rows, columns] within a slot.
  struct Grid {
    Slot slot;
    HeadsLayout layout;
    int64_t inner = 0;  // heads, where a copy of them is left out
  };

  const Geometry& geometry(Slot slot) const { return program_.geometries[slot]; }
  Instruction& at(Place place) const { return (*halves_[place.half])[place.index]; }
  void forget(Slot slot, Place reader) {
    std::vector<Place>& all = readers_[slot];
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const Place& one) { return one.half == reader.half && one.index == reader.index; });
    if (found != all.end()) all.erase(found);
  }

  // A copy without gaps of float32.
  bool is_copy(const Instruction& instruction) const {
    return instruction.kind == Instruction::Kind::atomic && instruction.name() == "aten::clone" && instruction.results.size() == 1 &&
           instruction.results[0] != kNoSlot && instruction.operands[0].slots[0] != kNoSlot &&
           geometry(instruction.results[0]).dtype == at::kFloat && is_dense(geometry(instruction.results[0])) &&
           geometry(instruction.results[0]).offset == 0 && !program_.written[instruction.results[0]];
  }

  const Instruction* maker(Slot slot) const {
    const auto found = makers_.find(slot);
    return found == makers_.end() ? nullptr : &at(found->second);
  }

  // Where a view's memory begins: its slot's base and the offset there.
  std::pair<Slot, int64_t> base_of(Slot slot) const {
    const Instruction* const made = maker(slot);
    if (made == nullptr || made->kind != Instruction::Kind::view) return {slot, 0};
    return {made->operands[0].slots[0], made->geometry.offset};
  }

  // The matrices of a factor, where what it is a copy of has them.
  std::optional<Grid> factor(Slot slot) const {
    const Geometry& matrices = geometry(slot);
    if (matrices.dtype != at::kFloat || matrices.sizes.size() != 3) return std::nullopt;
    const auto [base, offset] = base_of(slot);
    const Instruction* const copy = maker(base);
    const int64_t count = matrices.sizes[0], rows = matrices.sizes[1], columns = matrices.sizes[2];
    const Grid as_it_is{base, {offset, matrices.strides[0], 0, matrices.strides[1], matrices.strides[2]}};
    if (program_.written[base]) return std::nullopt;
    if (copy == nullptr || !is_copy(*copy) || offset != 0) return as_it_is;
    const Slot from = copy->operands[0].slots[0];
    const Geometry &source = geometry(from), &copied = geometry(base);
    const auto [origin, begin] = base_of(from);
    if (source.sizes.size() != 4 || source.sizes != copied.sizes || source.sizes[0] * source.sizes[1] != count) return as_it_is;
    if (program_.written[origin] || matrices.strides[0] != source.sizes[2] * source.sizes[3]) return as_it_is;
    const bool as_copied = rows == source.sizes[2] && columns == source.sizes[3] && matrices.strides[1] == columns && matrices.strides[2] == 1;
    const bool across = rows == source.sizes[3] && columns == source.sizes[2] && matrices.strides[1] == 1 && matrices.strides[2] == rows;
    if (!as_copied && !across) return as_it_is;
    const auto& s = source.strides;
    return Grid{origin, {begin, s[0], s[1], as_copied ? s[2] : s[3], as_copied ? s[3] : s[2]}, source.sizes[1]};
  }

  // The layout of a product [count, rows, columns] in the copy of a view of it that alone reads it.
  std::optional<std::pair<Place, HeadsLayout>> copied_result(Slot result, int64_t outer, int64_t inner, int64_t rows, int64_t columns) const {
    const auto only_reader = [&](Slot slot) -> const Place* {
      const auto found = readers_.find(slot);
      if (found == readers_.end() || found->second.size() != 1) return nullptr;
      return std::find(given_.begin(), given_.end(), slot) == given_.end() ? &found->second[0] : nullptr;
    };
    const Place* const viewed = only_reader(result);
    if (viewed == nullptr || at(*viewed).kind != Instruction::Kind::view || at(*viewed).geometry.offset != 0) return std::nullopt;
    const Place* const copied = only_reader(at(*viewed).results[0]);
    if (copied == nullptr || !is_copy(at(*copied))) return std::nullopt;
    const Geometry &view = geometry(at(*viewed).results[0]), &copy = geometry(at(*copied).results[0]);
    if (view.sizes.size() != 4 || view.sizes != copy.sizes) return std::nullopt;
    const std::array<int64_t, 4> sizes{outer, inner, rows, columns}, strides{inner * rows * columns, rows * columns, columns, 1};
    std::array<int64_t, 4> to{};
    for (size_t i = 0; i < 4; i++) {
      size_t dim = 0;
      while (dim < 4 && !(view.sizes[dim] == sizes[i] && view.strides[dim] == strides[i])) dim++;
      if (dim == 4 || sizes[i] == 1) return std::nullopt;
      to[i] = copy.strides[dim];
    }
    if (to[3] != 1) return std::nullopt;
    return std::pair{*copied, HeadsLayout{0, to[0], to[1], to[2], 1}};
  }

  static bool is_readable(const HeadsLayout& layout) { return layout.row == 1 || layout.column == 1; }

  void become_heads(Place place) {
    Instruction& instruction = at(place);
    if (instruction.kind != Instruction::Kind::atomic || instruction.name() != "aten::bmm" || instruction.results[0] == kNoSlot) return;
    const Slot a_slot = instruction.operands[0].slots[0], b_slot = instruction.operands[1].slots[0], result = instruction.results[0];
    if (a_slot == kNoSlot || b_slot == kNoSlot || geometry(result).dtype != at::kFloat || program_.written[result]) return;
    std::optional<Grid> a = factor(a_slot), b = factor(b_slot);
    if (!a || !b) return;
    const int64_t count = geometry(a_slot).sizes[0], rows = geometry(a_slot).sizes[1], terms = geometry(a_slot).sizes[2];
    const int64_t columns = geometry(b_slot).sizes[2];
    if (!fits_grids(count, rows, terms, columns)) return;
    if (!is_readable(a->layout)) return;
    const int64_t inner = std::max(a->inner, b->inner);
    const auto is_cut_alike = [&](const Grid& grid) { return grid.inner == 0 || grid.inner == inner; };
    if (!is_cut_alike(*a) || !is_cut_alike(*b) || (inner != 0 && count % inner != 0)) return;
    // The heads of a result are known by its copy.
    std::optional<std::pair<Place, HeadsLayout>> out;
    int64_t of_heads = inner;
    if (inner != 0) out = copied_result(result, count / inner, inner, rows, columns);
    for (int64_t some = 2; inner == 0 && !out && some < count; some++) {
      if (count % some == 0 && (out = copied_result(result, count / some, some, rows, columns))) of_heads = some;
    }
    if (of_heads == 0) return;
    for (Grid* const grid : {&*a, &*b}) {
      if (grid->inner != 0) continue;
      grid->layout.inner = grid->layout.outer;
      grid->layout.outer *= of_heads;
    }
    HeadsProduct product{a->layout, b->layout, {}, {count / of_heads, of_heads, rows, terms, columns}};
    product.out = out ? out->second : HeadsLayout{0, of_heads * rows * columns, rows * columns, columns, 1};
    each_read(instruction, [&](Slot slot) { forget(slot, place); });
    if (out) {
      Instruction& copy = at(out->first);
      const Slot copied = copy.results[0];
      each_read(copy, [&](Slot slot) { forget(slot, out->first); });
      copy.results[0] = result;  // that nobody reads any more, so the copy is left out
      instruction.results = {copied};
      makers_[copied] = place;
      makers_[result] = out->first;
      readers_[result].clear();
    }
    instruction.kind = Instruction::Kind::heads;
    instruction.heads = std::make_shared<const HeadsProduct>(product);
    instruction.operands.clear();
    for (const Slot slot : {a->slot, b->slot}) {
      instruction.operands.push_back({Operand::Kind::tensor, {}, {slot}, 0});
      readers_[slot].push_back(place);
    }
  }

  Program& program_;
  const std::array<std::vector<Instruction>*, 2> halves_;
  std::map<Slot, Place> makers_;
  std::map<Slot, std::vector<Place>> readers_;
  std::vector<Slot> given_;  // to the caller
};

}  // namespace

void Program::join_heads() { Heads(*this).join(); }

void play_heads(const Program& program, const Instruction& instruction, Played& played) {
  const HeadsProduct& product = *instruction.heads;
  const Slot result = instruction.results[0];
  at::Tensor out = at::detail::empty_cpu(program.geometries[result].sizes, at::TensorOptions(at::kFloat));
  const auto grid = [](float* first, const HeadsLayout& layout) {
    return MatrixGrid{first + layout.offset, layout.outer, layout.inner, layout.row, layout.column};
  };
  const auto factor = [&](size_t place, const HeadsLayout& layout) {
    const at::Tensor& tensor = played.slots[instruction.operands[place].slots[0]];
    return grid(const_cast<float*>(tensor.const_data_ptr<float>()), layout);
  };
  multiply_grids_in_tiles(factor(0, product.a), factor(1, product.b), grid(out.mutable_data_ptr<float>(), product.out), product.sizes);
  played.slots[result] = std::move(out);
}

}  // namespace troupe
