#include "core/programs/recording.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <utility>

#include "core/autograd/autocast.h"
#include "core/dispatch/describe.h"
#include "core/tensors/arguments.h"
#include "core/torch_version.h"

namespace troupe {
namespace {

thread_local Recording* present_recording = nullptr;

#if TROUPE_TORCH_AT_LEAST(2, 13)
// Below autograd, above what chooses a backend; nobody else uses it in a process without Python.
constexpr c10::DispatchKey kSeen = c10::DispatchKey::Fake;

void see(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const c10::DispatchKeySet below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kSeen);
  const c10::impl::ExcludeDispatchKeyGuard once(kSeen);
  if (present_recording == nullptr) return op.redispatchBoxed(below, stack);
  present_recording->call_atomic(op, below, stack);
}

void set_seen(bool seen) { c10::impl::tls_set_dispatch_key_included(kSeen, seen); }

bool depends_on_values(const c10::OperatorHandle& op) {
  return op.hasTag(at::Tag::dynamic_output_shape) || op.hasTag(at::Tag::data_dependent_output) || op.hasTag(at::Tag::inplace_view) ||
         op.hasTag(at::Tag::nondeterministic_seeded);
}
#else
void set_seen(bool) {}
bool depends_on_values(const c10::OperatorHandle&) { return true; }
#endif

// Operators seen are not seen again inside.
class Unseen {
 public:
#if TROUPE_TORCH_AT_LEAST(2, 13)
  Unseen() : guard_(kSeen) {}

 private:
  const c10::impl::ExcludeDispatchKeyGuard guard_;
#endif
};

// The bytes of a tensor that a program keeps, at most.
constexpr size_t kMaxBytes = 1 << 16;

bool writes(const c10::Argument& argument) { return argument.alias_info() != nullptr && argument.alias_info()->isWrite(); }

bool writes(const c10::OperatorHandle& op) {
  const auto& arguments = op.schema().arguments();
  return std::any_of(arguments.begin(), arguments.end(), [](const c10::Argument& argument) { return writes(argument); });
}

// Indices that are masks choose as many elements as their values say.
bool has_mask(const std::vector<c10::IValue>& given) {
  bool found = false;
  for (const c10::IValue& value : given) {
    if (!is_list_of_maybe_tensors(value)) continue;
    each_tensor(value, [&](const at::Tensor& tensor) {
      found = found || tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte;
    });
  }
  return found;
}

}  // namespace

#if TROUPE_TORCH_AT_LEAST(2, 13)
TORCH_LIBRARY_IMPL(_, Fake, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&see>()); }

bool can_record_programs() { return true; }
#else
bool can_record_programs() { return false; }
#endif

Recording* Recording::present() { return present_recording; }

Recording::Recording(Tensors arguments, const Tensors& parameters, std::vector<Tensors> lists) : lists_(std::move(lists)) {
  program_->arguments = facts_of(arguments);
  if (!arguments.empty() || !parameters.empty()) program_->device = (arguments.empty() ? parameters : arguments)[0].device();
  for (const at::Tensor& tensor : arguments) {
    if (tensor.device() != program_->device) refuse("arguments on " + program_->device.str() + " and " + tensor.device().str());
    if (!tensor.has_storage()) refuse("an argument without memory");
    add(tensor);
  }
  for (const at::Tensor& tensor : parameters) {
    const bool given = std::any_of(arguments.begin(), arguments.end(), [&](const at::Tensor& one) { return one.is_alias_of(tensor); });
    if (given) refuse("a parameter among the arguments");
    program_->bound.push_back(tensor);
    add(tensor);
  }
}

Recording::~Recording() {
  if (runs_) pause();
}

void Recording::begin() {
  present_recording = this;
  outer_ = std::exchange(autograd_watcher(), this);
  set_seen(true);
  runs_ = true;
}

void Recording::pause() {
  set_seen(false);
  autograd_watcher() = outer_;
  present_recording = nullptr;
  runs_ = false;
}

void Recording::refuse(const std::string& reason) {
  if (refusal_.empty()) refusal_ = reason;
}

Slot Recording::add(const at::Tensor& tensor) {
  const Slot slot = static_cast<Slot>(values_.size());
  values_.push_back(tensor);
  program_->geometries.push_back(Geometry::of(tensor));
  program_->written.push_back(false);
  constant_.push_back(false);
  literal_.push_back(false);
  slots_of_[tensor.storage().unsafeGetStorageImpl()].push_back(slot);
  return slot;
}

Slot Recording::add_made(const at::Tensor& tensor) {
  const bool is_new = tensor.defined() && slots_of_.count(tensor.storage().unsafeGetStorageImpl()) == 0;
  return is_new ? add(tensor) : kNoSlot;
}

Slot Recording::find(const at::Tensor& tensor, const std::string& reader) {
  if (!tensor.defined() || !refusal_.empty()) return kNoSlot;
  if (!tensor.has_storage() || tensor.device() != program_->device || tensor.is_conj() || tensor.is_neg()) {
    refuse(reader + " of a tensor without plain memory of " + program_->device.str());
    return kNoSlot;
  }
  const auto known = slots_of_.find(tensor.storage().unsafeGetStorageImpl());
  if (known == slots_of_.end()) {
    refuse(reader + " of a tensor that the block was not given and did not compute: " + describe_tensor(tensor));
    return kNoSlot;
  }
  const Geometry geometry = Geometry::of(tensor);
  for (const Slot slot : known->second) {
    if (program_->geometries[slot] == geometry) return slot;
  }
  const Slot base = known->second.front();
  if (geometry.dtype != program_->geometries[base].dtype) {
    refuse(reader + " of a tensor's bytes as another dtype");
    return kNoSlot;
  }
  Instruction view;
  view.kind = Instruction::Kind::view;
  view.geometry = geometry;
  view.geometry.offset -= program_->geometries[base].offset;
  view.operands.push_back({Operand::Kind::tensor, {}, {base}, 0});
  const Slot slot = add(tensor);
  view.results = {slot};
  program_->written[slot] = program_->written[base];
  if (constant_[base]) keep_constant(slot, tensor);
  half().push_back(std::move(view));
  return slot;
}

Operand Recording::operand(const c10::IValue& value, const c10::Argument& argument, const std::string& op) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (tensor.defined() && tensor.unsafeGetTensorImpl()->is_wrapped_number()) return {Operand::Kind::constant, value, {}, 0};
    return {Operand::Kind::tensor, {}, {find(tensor, op)}, 0};
  }
  if (value.isTensorList()) {
    const Tensors tensors = value.toTensorVector();
    const auto is_same = [](const at::Tensor& one, const at::Tensor& other) { return one.is_same(other); };
    for (size_t i = 0; i < lists_.size(); i++) {
      if (std::equal(tensors.begin(), tensors.end(), lists_[i].begin(), lists_[i].end(), is_same)) {
        return {Operand::Kind::late_list, {}, {}, static_cast<int32_t>(i)};
      }
    }
    Operand list{Operand::Kind::tensors, {}, {}, 0};
    for (const at::Tensor& tensor : tensors) list.slots.push_back(find(tensor, op));
    return list;
  }
  if (is_list_of_maybe_tensors(value)) {
    refuse(op + ", whose list of tensors has gaps");
    return {};
  }
  if (value.isGenerator()) refuse(op + " with random numbers that no seed and stream name");
  if (argument.name() == "stream" && value.isInt()) return {Operand::Kind::late, value, {}, -1};
  return {Operand::Kind::constant, value, {}, 0};
}

std::vector<Operand> Recording::operands(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const auto& arguments = op.schema().arguments();
  const std::string name = c10::toString(op.operator_name());
  std::vector<Operand> made;
  made.reserve(arguments.size());
  for (size_t i = 0; i < arguments.size(); i++) made.push_back(operand(stack[stack.size() - arguments.size() + i], arguments[i], name));
  return made;
}

void Recording::note(Instruction instruction, const c10::OperatorHandle& op, const std::vector<c10::IValue>& given,
                     const torch::jit::Stack& stack) {
  if (!refusal_.empty()) return;
  const std::string name = c10::toString(op.operator_name());
  const size_t count = op.schema().returns().size();
  const bool in_place = writes(op);
  if (depends_on_values(op) || has_mask(given)) return refuse(name + ", which depends on values or changes a tensor's shape");
  const auto& arguments = op.schema().arguments();
  for (size_t i = 0; i < arguments.size(); i++) {
    if (!writes(arguments[i])) continue;
    const Operand& written = instruction.operands[i];
    for (const Slot slot : written.slots) {
      if (slot == kNoSlot) continue;
      for (const Slot other : slots_of_[values_[slot].storage().unsafeGetStorageImpl()]) {
        if (is_given(other) || literal_[other]) return refuse(name + " in place on what the block was given");
        program_->written[other] = true;
      }
      if (!(Geometry::of(values_[slot]) == program_->geometries[slot])) return refuse(name + ", which changes a tensor's shape");
    }
  }
  std::vector<at::Tensor> made;
  const size_t first = stack.size() - count;
  for (size_t i = 0; i < count; i++) {
    const c10::IValue& value = stack[first + i];
    if (value.isTensor()) {
      made.push_back(value.toTensor());
    } else if (value.isTensorList() && count == 1) {
      instruction.lists = true;
      for (const at::Tensor& tensor : value.toTensorVector()) made.push_back(tensor);
    } else {
      return refuse(name + ", which gives a number");
    }
  }
  bool computes = in_place;
  for (const at::Tensor& tensor : made) {
    if (!tensor.defined()) continue;
    if (!tensor.has_storage()) return refuse(name + ", which gives a tensor without memory");
    computes = computes || slots_of_.count(tensor.storage().unsafeGetStorageImpl()) == 0;
  }
  // Another look at known memory is made where it is read.
  if (!computes && instruction.kind == Instruction::Kind::atomic) return;
  for (const at::Tensor& tensor : made) instruction.results.push_back(add_made(tensor));
  if (!in_place && is_constant(instruction)) keep_constant(instruction.results[0], made[0]);
  half().push_back(std::move(instruction));
}

bool Recording::is_constant(const Instruction& instruction) const {
  if (instruction.kind != Instruction::Kind::atomic || instruction.results.size() != 1 || instruction.results[0] == kNoSlot) return false;
  if (instruction.name().rfind("aten::empty", 0) == 0) return false;
  return std::all_of(instruction.operands.begin(), instruction.operands.end(), [&](const Operand& operand) {
    return operand.kind != Operand::Kind::late &&
           std::all_of(operand.slots.begin(), operand.slots.end(),
                       [&](Slot slot) { return slot == kNoSlot || (constant_[slot] && !program_->written[slot]); });
  });
}

void Recording::keep_constant(Slot slot, const at::Tensor& tensor) {
  if (tensor.storage().nbytes() > kMaxBytes) return;
  constant_[slot] = true;
  program_->constants.emplace_back(slot, tensor.detach());
}

at::Tensor Recording::literal(const std::function<at::Tensor()>& make) {
  const Unseen unseen;
  at::Tensor made = make();
  // A larger one is one that the block was not given.
  if (!refusal_.empty() || made.device() != program_->device || made.nbytes() > kMaxBytes) return made;
  const Slot slot = add(made);
  constant_[slot] = literal_[slot] = true;
  program_->literals.emplace_back(slot, made.detach());
  return made;
}

void Recording::call_atomic(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  program_->num_issued[is_backward_]++;
  if (!refusal_.empty()) return op.redispatchBoxed(keys, stack);
  const std::vector<c10::IValue> given(stack->end() - static_cast<int64_t>(op.schema().arguments().size()), stack->end());
  // A view is made where it is read.
  if (!writes(op) && op.schema().returns().size() == 1 && op.schema().returns()[0].alias_info() != nullptr) {
    return op.redispatchBoxed(keys, stack);
  }
  Instruction instruction;
  instruction.op = op;
  instruction.operands = operands(op, *stack);
  op.redispatchBoxed(keys, stack);
  note(std::move(instruction), op, given, *stack);
}

void Recording::call_own(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  program_->num_issued[is_backward_]++;
  if (!refusal_.empty()) return op.callBoxed(stack);
  const std::vector<c10::IValue> given = stack;
  Instruction instruction;
  instruction.kind = Instruction::Kind::own;
  instruction.op = op;
  instruction.autocast = autocast_dtype();
  instruction.operands = operands(op, stack);
  {
    const Unseen unseen;
    own_ = &instruction;
    try {
      op.callBoxed(stack);
    } catch (...) {
      own_ = nullptr;
      throw;
    }
    own_ = nullptr;
  }
  note(std::move(instruction), op, given, stack);
}

bool Recording::wants(bool asked) {
  if (own_ != nullptr) own_->wants.push_back(asked);
  return asked;
}

bool Recording::take(Backward&, const Tensors&, int64_t& index) {
  if (own_ == nullptr) {
    refuse("a gradient of Troupe's outside its operators");
    return false;
  }
  own_->num_backwards++;
  index = num_backwards_++;
  return false;
}

void Recording::ran(int64_t index, const Tensors& gradients, const Tensors& results) {
  program_->num_issued[is_backward_]++;
  if (!refusal_.empty()) return;
  Instruction instruction;
  instruction.kind = Instruction::Kind::gradient;
  instruction.backward = static_cast<int32_t>(index);
  Operand list{Operand::Kind::tensors, {}, {}, 0};
  for (const at::Tensor& tensor : gradients) list.slots.push_back(find(tensor, "a gradient"));
  instruction.operands.push_back(std::move(list));
  for (const at::Tensor& tensor : results) {
    if (tensor.defined() && !tensor.has_storage()) return refuse("a gradient without memory");
    instruction.results.push_back(add_made(tensor));
  }
  half().push_back(std::move(instruction));
}

Tensors Recording::unseen(const std::function<Tensors()>& body) {
  const Unseen unseen;
  return body();
}

void Recording::end_forward(const Tensors& results, const std::vector<int64_t>& draws) {
  pause();
  for (const at::Tensor& tensor : results) {
    const Slot slot = find(tensor, "a result");
    if (slot == kNoSlot) refuse("a result that is no tensor");
    const bool is_literal = slot != kNoSlot && literal_[slots_of_[tensor.storage().unsafeGetStorageImpl()].front()];
    if (is_literal) refuse("a result that was made of numbers");
    program_->results.push_back(slot);
  }
  program_->num_late = draws.size();
  draws_ = draws;
  settle_draws(program_->forwards);
  is_backward_ = true;
  // Nobody else holds these: nothing of backward can read them, and their memory may be used again.
  for (auto known = slots_of_.begin(); known != slots_of_.end();) {
    const std::vector<Slot>& slots = known->second;
    const bool ours = std::all_of(slots.begin(), slots.end(), [&](Slot slot) { return !is_given(slot) && values_[slot].use_count() == 1; });
    if (!ours || values_[slots.front()].storage().use_count() != slots.size()) {
      ++known;
      continue;
    }
    for (const Slot slot : slots) values_[slot].reset();
    known = slots_of_.erase(known);
  }
}

void Recording::settle_draws(std::vector<Instruction>& instructions) {
  for (Instruction& instruction : instructions) {
    for (Operand& operand : instruction.operands) {
      if (operand.kind != Operand::Kind::late) continue;
      const auto drawn = std::find(draws_.begin(), draws_.end(), operand.constant.toInt());
      if (drawn == draws_.end()) refuse(instruction.name() + " with a stream of random numbers that no module drew");
      operand.late = static_cast<int32_t>(drawn - draws_.begin());
      operand.constant = {};
    }
  }
}

void Recording::begin_backward(const Tensors& gradients) {
  if (!refusal_.empty()) return begin();
  for (const at::Tensor& tensor : gradients) {
    const bool known = tensor.defined() && slots_of_.count(tensor.storage().unsafeGetStorageImpl()) != 0;
    if (known) refuse("a gradient in memory that the block knows already");
    program_->gradient_slots.push_back(tensor.defined() ? add(tensor) : kNoSlot);
  }
  begin();
}

void Recording::end_backward(const Tensors& made) {
  pause();
  for (const at::Tensor& tensor : made) program_->gradients.push_back(find(tensor, "a result of backward"));
  settle_draws(program_->backwards);
  finish();
}

void Recording::finish() {
  program_->num_slots = static_cast<int64_t>(values_.size());
  values_.clear();
  slots_of_.clear();
}

}  // namespace troupe
