#include "core/programs/program.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <utility>

#include "core/autograd/autocast.h"
#include "core/autograd/watched.h"
#include "core/dispatch/describe.h"
#include "core/error.h"
#include "core/threads.h"

namespace troupe {
namespace {

// Answers a kernel as it was answered when the program was recorded, and takes its backward.
class Taking final : public AutogradWatcher {
 public:
  Taking(Played& played, bool takes) : played_(played), takes_(takes), outer_(std::exchange(autograd_watcher(), this)) {}
  ~Taking() override { autograd_watcher() = outer_; }
  Taking(const Taking&) = delete;
  Taking& operator=(const Taking&) = delete;

  void begin(const std::vector<bool>& answers) {
    answers_ = &answers;
    next_ = 0;
  }
  bool wants(bool asked) override {
    if (answers_ == nullptr) return asked;
    return takes_ && next_ < answers_->size() && (*answers_)[next_++];
  }
  bool take(Backward& backward, const Tensors& saved, int64_t&) override {
    played_.backwards.push_back({std::move(backward), saved});
    return true;
  }
  void ran(int64_t, const Tensors&, const Tensors&) override {}
  Tensors unseen(const std::function<Tensors()>& body) override { return body(); }

 private:
  Played& played_;
  const bool takes_;
  AutogradWatcher* const outer_;
  const std::vector<bool>* answers_ = nullptr;
  size_t next_ = 0;
};

// An operator of Troupe's casts as it did when it was recorded, wherever the call is replayed.
class Casting {
 public:
  explicit Casting(std::optional<at::ScalarType> dtype) : outer_(autocast_dtype()), changes_(outer_ != dtype) {
    if (changes_) set_autocast(dtype);
  }
  ~Casting() {
    if (changes_) set_autocast(outer_);
  }
  Casting(const Casting&) = delete;
  Casting& operator=(const Casting&) = delete;

 private:
  const std::optional<at::ScalarType> outer_;
  const bool changes_;
};

at::Tensor view_of(const at::Tensor& base, const Geometry& geometry) {
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(base.storage()), base.key_set(), base.dtype());
  c10::TensorImpl* const impl = view.unsafeGetTensorImpl();
  impl->set_storage_offset(base.storage_offset() + geometry.offset);
  impl->set_sizes_and_strides(geometry.sizes, geometry.strides);
  return view;
}

bool lies_as(const Geometry& geometry, const at::Tensor& tensor) {
  for (size_t i = 0; i < geometry.sizes.size(); i++) {
    if (geometry.sizes[i] != 1 && tensor.strides()[i] != geometry.strides[i]) return false;
  }
  return true;
}

// Whether several elements share memory, as those of an expanded tensor do.
bool repeats(at::IntArrayRef sizes, at::IntArrayRef strides) {
  for (size_t i = 0; i < sizes.size(); i++) {
    if (sizes[i] > 1 && strides[i] == 0) return true;
  }
  return false;
}

// A tensor that lies otherwise than a recorded one is laid out as that was: views know where its elements were.
at::Tensor laid_as(const Geometry& geometry, const at::Tensor& tensor) {
  if (lies_as(geometry, tensor)) return tensor;
  const at::AutoGradMode no_graph(false);
  const at::AutoDispatchBelowADInplaceOrView below;
  const at::Tensor laid = at::empty_strided(geometry.sizes, geometry.strides, tensor.options());
  laid.copy_(tensor);
  return laid;
}

[[noreturn]] void refuse_other(const Instruction& instruction) {
  throw CodedError("NATIVE_FAILED", "[program] expected " + instruction.name() +
                                        " to leave the gradients that it left when it was recorded, got others");
}

// The calling thread's operators run on it alone.
class OnOneThread {
 public:
  explicit OnOneThread(bool sets) : sets_(sets && num_threads() > 1) {
    if (sets_) set_threads_of_operators(1);
  }
  ~OnOneThread() {
    if (sets_) set_threads_of_operators(before_);
  }
  OnOneThread(const OnOneThread&) = delete;
  OnOneThread& operator=(const OnOneThread&) = delete;

 private:
  const int before_ = num_threads();
  const bool sets_;
};

class Player {
 public:
  Player(const Program& program, Played& played, Purpose purpose)
      : program_(program), played_(played), purpose_(purpose), taking_(played, keeps()) {}

  void play(const std::vector<Instruction>& instructions) {
    for (const Instruction& instruction : instructions) {
      if (purpose_ != Purpose::backward || !instruction.for_results) step(instruction);
      else if (instruction.num_backwards > 0) leave_dropout(instruction, played_);
      for (const Slot slot : instruction.last_uses) played_.slots[slot].reset();
    }
  }

 private:
  // Whether backward will come.
  bool keeps() const { return purpose_ != Purpose::results; }

  void step(const Instruction& instruction) {
    switch (instruction.kind) {
      case Instruction::Kind::view:
        played_.slots[instruction.results[0]] = view_of(played_.slots[instruction.operands[0].slots[0]], instruction.geometry);
        return;
      case Instruction::Kind::gradient: return walk(instruction);
      case Instruction::Kind::chain: return chain(instruction);
      case Instruction::Kind::heads: return play_heads(program_, instruction, played_);
      case Instruction::Kind::product: return play_product(program_, instruction, played_, keeps());
      case Instruction::Kind::atomic: {
        if (const at::Tensor place = place_of(instruction); place.defined()) return multiply(place, instruction);
        push(instruction);
        instruction.op->callBoxed(stack_);
        break;
      }
      case Instruction::Kind::own: {
        push(instruction);
        taking_.begin(instruction.wants);
        const size_t before = played_.backwards.size();
        {
          const c10::impl::ForceDispatchKeyGuard as_called(outer_);
          const Casting casting(instruction.autocast);
          instruction.op->callBoxed(stack_);
        }
        const size_t left = keeps() ? static_cast<size_t>(instruction.num_backwards) : 0;
        if (played_.backwards.size() != before + left) refuse_other(instruction);
        break;
      }
    }
    pop(instruction);
  }

  at::Tensor place_of(const Instruction& instruction) const {
    return played_.places.empty() || instruction.results.empty() ? at::Tensor() : played_.place_of(instruction.results[0]);
  }

  void multiply(at::Tensor place, const Instruction& instruction) {
    multiply_into(place, at(instruction.operands[0].slots[0]), at(instruction.operands[1].slots[0]));
    played_.slots[instruction.results[0]] = std::move(place);
  }

  void chain_on_device(const Instruction& instruction) {
    Tensors sources, outputs;
    for (const Slot slot : instruction.operands[0].slots) sources.push_back(at(slot));
    for (const Slot slot : instruction.results) {
      outputs.push_back(at::empty(program_.geometries[slot].sizes, at::TensorOptions(program_.geometries[slot].dtype).device(program_.device)));
      played_.slots[slot] = outputs.back();
    }
    if (!outputs.empty()) program_.run_on_device(instruction.chain, sources, outputs);
  }

  void chain(const Instruction& instruction) {
    if (program_.run_on_device != nullptr) return chain_on_device(instruction);
    sources_.clear();
    outputs_.clear();
    for (const Slot slot : instruction.operands[0].slots) {
      sources_.push_back(slot == kNoSlot ? nullptr : played_.slots[slot].const_data_ptr());
    }
    for (const Slot slot : instruction.results) {
      at::Tensor made = at::detail::empty_cpu(program_.geometries[slot].sizes, at::TensorOptions(program_.geometries[slot].dtype));
      outputs_.push_back(made.mutable_data_ptr());
      played_.slots[slot] = std::move(made);
    }
    run_chain(*instruction.chain, sources_, outputs_);
  }

  void walk(const Instruction& instruction) {
    Tensors gradients;
    gradients.reserve(instruction.operands[0].slots.size());
    for (const Slot slot : instruction.operands[0].slots) gradients.push_back(at(slot));
    Played::Left& kept = played_.backwards[instruction.backward];
    const Played::Left left = instruction.walks_again ? kept : std::move(kept);
    const Tensors results = left.backward(gradients, left.saved);
    if (results.size() != instruction.results.size()) refuse_other(instruction);
    for (size_t i = 0; i < results.size(); i++) {
      if (instruction.results[i] != kNoSlot) played_.slots[instruction.results[i]] = results[i];
    }
  }

  void push(const Instruction& instruction) {
    stack_.clear();
    for (const Operand& operand : instruction.operands) {
      switch (operand.kind) {
        case Operand::Kind::constant: stack_.push_back(operand.constant); break;
        case Operand::Kind::late: stack_.emplace_back(played_.late[operand.late]); break;
        case Operand::Kind::late_list: stack_.emplace_back(c10::List<at::Tensor>(played_.lists[operand.late])); break;
        case Operand::Kind::tensor: stack_.emplace_back(at(operand.slots[0])); break;
        case Operand::Kind::tensors: {
          c10::List<at::Tensor> list;
          list.reserve(operand.slots.size());
          for (const Slot slot : operand.slots) list.push_back(at(slot));
          stack_.emplace_back(std::move(list));
          break;
        }
      }
    }
  }

  void pop(const Instruction& instruction) {
    if (instruction.lists) {
      const auto tensors = stack_[0].toTensorVector();
      for (size_t i = 0; i < instruction.results.size(); i++) put(instruction.results[i], tensors[i]);
    } else {
      for (size_t i = 0; i < instruction.results.size(); i++) put(instruction.results[i], std::move(stack_[i]).toTensor());
    }
    stack_.clear();
  }

  void put(Slot slot, at::Tensor tensor) {
    if (slot != kNoSlot) played_.slots[slot] = std::move(tensor);
  }
  at::Tensor at(Slot slot) const { return slot == kNoSlot ? at::Tensor() : played_.slots[slot]; }

  const Program& program_;
  Played& played_;
  const Purpose purpose_;
  Taking taking_;
  const OnOneThread one_thread_{program_.on_one_thread};
  const c10::impl::LocalDispatchKeySet outer_ = c10::impl::tls_local_dispatch_key_set();
  const at::AutoGradMode no_graph_{false};
  const at::AutoDispatchBelowADInplaceOrView below_;
  // The casts of autocast were recorded.
  const c10::impl::ExcludeDispatchKeyGuard cast_already_{c10::autocast_dispatch_keyset};
  torch::jit::Stack stack_;
  std::vector<const void*> sources_;
  std::vector<void*> outputs_;
};

std::string shape_of(const Geometry& geometry) {
  std::string text = dtype_name(geometry.dtype) + "[";
  for (size_t i = 0; i < geometry.sizes.size(); i++) text += (i == 0 ? "" : ", ") + std::to_string(geometry.sizes[i]);
  return text + "]";
}

std::string constant_text(const c10::IValue& constant) {
  std::ostringstream text;
  if (constant.isTensor()) {
    if (constant.toTensor().defined()) text << constant.toTensor().item().toDouble();
    else text << "none";
  } else if (constant.isNone()) {
    text << "none";
  } else {
    text << constant;
  }
  return text.str();
}

bool same_operand(const Operand& one, const Operand& other) {
  if (one.kind != other.kind || one.slots != other.slots || one.late != other.late) return false;
  if (one.kind != Operand::Kind::constant) return true;
  if (one.constant.isTensor() && other.constant.isTensor()) {
    const at::Tensor &a = one.constant.toTensor(), &b = other.constant.toTensor();
    return a.defined() == b.defined() && (!a.defined() || a.item().toDouble() == b.item().toDouble());
  }
  return one.constant == other.constant;
}

bool same_literal(const std::pair<Slot, at::Tensor>& one, const std::pair<Slot, at::Tensor>& other) {
  const at::Tensor a = one.second.cpu(), b = other.second.cpu();
  return one.first == other.first && a.scalar_type() == b.scalar_type() && a.sizes().equals(b.sizes()) &&
         std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

std::string differing(const std::vector<Instruction>& ones, const std::vector<Instruction>& others) {
  for (size_t i = 0; i < std::max(ones.size(), others.size()); i++) {
    if (i >= ones.size() || i >= others.size()) return "other operators in the same call";
    const Instruction &one = ones[i], &other = others[i];
    if (one.kind != other.kind || one.name() != other.name()) return one.name() + ", then " + other.name();
    const bool same = one.results == other.results && one.geometry == other.geometry && one.backward == other.backward &&
                      one.wants == other.wants && one.autocast == other.autocast && one.operands.size() == other.operands.size() &&
                      std::equal(one.operands.begin(), one.operands.end(), other.operands.begin(), same_operand);
    if (!same) return one.name() + " with other numbers or tensors";
  }
  return "";
}

}  // namespace

Geometry Geometry::of(const at::Tensor& tensor) {
  return {tensor.sizes().vec(), tensor.strides().vec(), tensor.storage_offset(), tensor.scalar_type()};
}

int64_t numel_of(const Geometry& geometry) {
  int64_t numel = 1;
  for (const int64_t size : geometry.sizes) numel *= size;
  return numel;
}

bool is_dense(const Geometry& geometry) {
  int64_t stride = 1;
  for (size_t i = geometry.sizes.size(); i-- > 0;) {
    if (geometry.sizes[i] != 1 && geometry.strides[i] != stride) return false;
    stride *= geometry.sizes[i];
  }
  return stride > 0;
}

std::string Instruction::name() const {
  if (kind == Kind::view) return "view";
  if (kind == Kind::gradient) return "gradient";
  if (kind == Kind::chain) {
    std::string text;
    for (const ChainStep& step : chain->steps) {
      text += text.empty() ? "one pass of " : ", ";
      text += name_of(step);
    }
    return text;
  }
  if (kind == Kind::product) return product->name();
  if (kind == Kind::heads) return "products of heads";
  return c10::toString(op->operator_name());
}

std::vector<std::string> Program::describe(bool backward) const {
  const size_t num_given = arguments.size();
  const auto name_of = [&](Slot slot) -> std::string {
    if (slot == kNoSlot) return "none";
    const size_t index = static_cast<size_t>(slot);
    if (index < num_given) return "argument " + std::to_string(index);
    if (index < num_given + bound.size()) return "parameter " + std::to_string(index - num_given);
    return "%" + std::to_string(index - num_given - bound.size());
  };
  const auto list_of = [&](const std::vector<Slot>& slots) {
    std::string text;
    for (const Slot slot : slots) text += (text.empty() ? "" : ", ") + name_of(slot);
    return text;
  };
  std::vector<std::string> left;  // names of the operators that left backwards, in order
  for (const std::vector<Instruction>* const half : {&forwards, &backwards}) {
    for (const Instruction& instruction : *half) left.insert(left.end(), instruction.num_backwards, instruction.name());
  }
  std::vector<std::string> lines;
  for (const Instruction& instruction : backward ? backwards : forwards) {
    std::string line;
    for (const Slot slot : instruction.results) {
      if (slot != kNoSlot) line += (line.empty() ? "" : ", ") + name_of(slot) + ": " + shape_of(geometries[slot]);
    }
    line += (line.empty() ? "" : " = ") + instruction.name();
    if (instruction.kind == Instruction::Kind::gradient) line += " of " + left[instruction.backward];
    std::string given;
    for (const Operand& operand : instruction.operands) {
      given += given.empty() ? "" : ", ";
      switch (operand.kind) {
        case Operand::Kind::constant: given += constant_text(operand.constant); break;
        case Operand::Kind::late: given += "stream " + std::to_string(operand.late); break;
        case Operand::Kind::late_list: given += "list " + std::to_string(operand.late); break;
        case Operand::Kind::tensor: given += name_of(operand.slots[0]); break;
        case Operand::Kind::tensors: given += "[" + list_of(operand.slots) + "]"; break;
      }
    }
    lines.push_back(line + "(" + given + ")");
  }
  return lines;
}

std::vector<ArgumentFacts> facts_of(const Tensors& arguments) {
  std::vector<ArgumentFacts> facts;
  facts.reserve(arguments.size());
  for (size_t i = 0; i < arguments.size(); i++) {
    ArgumentFacts each{Geometry::of(arguments[i]), arguments[i].requires_grad(), static_cast<int32_t>(i)};
    for (size_t j = 0; j < i; j++) {
      if (!arguments[j].is_alias_of(arguments[i])) continue;
      each.first_of_storage = static_cast<int32_t>(j);
      break;
    }
    each.geometry.offset -= arguments[each.first_of_storage].storage_offset();
    facts.push_back(std::move(each));
  }
  return facts;
}

bool Program::fits(const Tensors& given) const {
  if (given.size() != arguments.size()) return false;
  for (size_t i = 0; i < given.size(); i++) {
    const ArgumentFacts& facts = arguments[i];
    const at::Tensor& tensor = given[i];
    const bool same = tensor.scalar_type() == facts.geometry.dtype && tensor.device() == device &&
                      tensor.requires_grad() == facts.requires_grad && tensor.sizes().equals(facts.geometry.sizes) &&
                      tensor.strides().equals(facts.geometry.strides);
    if (!same) return false;
    size_t first = 0;
    while (first < i && !given[first].is_alias_of(tensor)) first++;
    if (static_cast<int32_t>(first) != facts.first_of_storage) return false;
    if (tensor.storage_offset() - given[first].storage_offset() != facts.geometry.offset) return false;
  }
  return true;
}

Tensors Program::forward(const Tensors& given, Purpose purpose, Played& played) const {
  played.slots.resize(num_slots);
  std::copy(given.begin(), given.end(), played.slots.begin());
  std::copy(bound.begin(), bound.end(), played.slots.begin() + static_cast<int64_t>(given.size()));
  for (const auto* const made : {&literals, &constants}) {
    for (const auto& [slot, value] : *made) played.slots[slot] = value;
  }
  Player(*this, played, purpose).play(forwards);
  Tensors made;
  if (purpose != Purpose::backward) {
    made.reserve(results.size());
    for (const Slot slot : results) made.push_back(played.slots[slot].detach());
  }
  if (purpose != Purpose::results) {
    for (size_t slot = 0; slot < played.slots.size(); slot++) {
      if (!lasts[slot]) played.slots[slot].reset();
    }
  }
  return made;
}

bool Program::takes(const Tensors& given) const {
  for (size_t i = 0; i < given.size(); i++) {
    if (gradient_slots[i] == kNoSlot) continue;
    const Geometry& recorded = geometries[gradient_slots[i]];
    const bool either_repeats = repeats(recorded.sizes, recorded.strides) || repeats(given[i].sizes(), given[i].strides());
    if (either_repeats && !lies_as(recorded, given[i])) return false;
  }
  return true;
}

Tensors Program::backward(const Tensors& given, Played& played, const std::vector<GradientPlace>& places) const {
  place_gradients(places, played);
  for (size_t i = 0; i < given.size(); i++) {
    if (gradient_slots[i] != kNoSlot) played.slots[gradient_slots[i]] = laid_as(geometries[gradient_slots[i]], given[i]);
  }
  Player(*this, played, Purpose::results_and_backward).play(backwards);
  Tensors made;
  made.reserve(gradients.size());
  for (const Slot slot : gradients) made.push_back(slot == kNoSlot ? at::Tensor() : played.slots[slot]);
  return made;
}

std::string Program::difference(const Program& other) const {
  if (const std::string forward = differing(forwards, other.forwards); !forward.empty()) return forward;
  if (const std::string backward = differing(backwards, other.backwards); !backward.empty()) return backward;
  const bool same_literals = std::equal(literals.begin(), literals.end(), other.literals.begin(), other.literals.end(), same_literal);
  if (!same_literals) return "a tensor made of other numbers";
  const bool same = num_slots == other.num_slots && results == other.results && gradients == other.gradients &&
                    gradient_slots == other.gradient_slots;
  return same ? "" : "other results";
}

}  // namespace troupe
