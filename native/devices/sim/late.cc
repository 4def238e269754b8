#include "devices/sim/late.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/DeviceGuard.h>

#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "core/dispatch/describe.h"
#include "core/invariance.h"
#include "core/threads.h"
#include "core/torch_version.h"
#include "devices/sim/device.h"

#if TROUPE_TORCH_AT_LEAST(2, 9)

namespace troupe::sim {
namespace {

using Stack = torch::jit::Stack;

std::string name_of(const c10::OperatorHandle& op) {
  const std::string name = op.operator_name().name;
  return name.rfind("aten::", 0) == 0 ? name.substr(6) : name;
}

bool writes(const c10::Argument& argument) { return argument.alias_info() != nullptr && argument.alias_info()->isWrite(); }

bool writes_any(const c10::FunctionSchema& schema) {
  for (const c10::Argument& argument : schema.arguments()) {
    if (writes(argument)) return true;
  }
  return false;
}

// Gives back nothing but what it writes, which has its shape already.
bool is_in_place(const c10::FunctionSchema& schema) {
  for (const c10::Argument& result : schema.returns()) {
    if (!writes(result)) return false;
  }
  return writes_any(schema) && schema.overload_name().find("out") == std::string::npos;
}

bool is_of_tensors(const c10::TypePtr& type) {
  if (const auto list = type->cast<c10::ListType>()) return is_of_tensors(list->getElementType());
  return type->kind() == c10::TypeKind::TensorType;
}

// Whether the shape of the result, or the result itself, is known only when all before it has run.
bool needs_values(const c10::OperatorHandle& op, const Stack& arguments) {
  static const std::set<std::string> by_value{"aten::nonzero", "aten::masked_select", "aten::_unique2", "aten::_unique",
                                              "aten::unique_dim", "aten::unique_consecutive", "aten::repeat_interleave",
                                              "aten::bincount", "aten::histc", "aten::_linalg_check_errors"};
  for (const c10::Argument& result : op.schema().returns()) {
    if (!is_of_tensors(result.type())) return true;
  }
  if (by_value.count(op.operator_name().name) > 0) return true;
  bool masks = false;
  for (const c10::IValue& argument : arguments) {
    if (!is_list_of_maybe_tensors(argument)) continue;
    each_tensor(argument, [&](const at::Tensor& index) {
      masks = masks || index.scalar_type() == at::kBool || index.scalar_type() == at::kByte;
    });
  }
  return masks && !is_in_place(op.schema());
}

// Operators found to have no shape function in libtorch.
class WithoutRule {
 public:
  bool has(const c10::OperatorHandle& op) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return names_.count(op.operator_name()) > 0;
  }
  void add(const c10::OperatorHandle& op) {
    const std::lock_guard<std::mutex> lock(mutex_);
    names_.insert(op.operator_name());
  }
  static WithoutRule& operators() {
    static auto* const instance = new WithoutRule;
    return *instance;
  }

 private:
  struct Less {
    bool operator()(const c10::OperatorName& a, const c10::OperatorName& b) const {
      return std::tie(a.name, a.overload_name) < std::tie(b.name, b.overload_name);
    }
  };
  std::mutex mutex_;
  std::set<c10::OperatorName, Less> names_;
};

void call_below_autograd(const c10::OperatorHandle& op, Stack& stack) {
  const at::AutoDispatchBelowADInplaceOrView below;
  op.callBoxed(stack);
}

at::Tensor empty_like_result(const at::Tensor& result, c10::DeviceIndex device) {
  const c10::DeviceGuard guard(c10::Device(c10::DeviceType::PrivateUse1, device));
  return at::Tensor(at::detail::empty_strided_generic(result.sizes(), result.strides(), allocator(),
                                                      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                                      result.scalar_type()));
}

// Resizes an out argument to the shape of its result.
void take_shape(const at::Tensor& tensor, const at::Tensor& like) {
  if (tensor.sizes() == like.sizes()) return;
  const size_t bytes = at::detail::computeStorageNbytes(like.sizes(), like.strides(), tensor.itemsize(),
                                                        static_cast<size_t>(tensor.storage_offset()));
  if (bytes > tensor.storage().nbytes()) resize_memory(tensor.storage(), bytes);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides());
}

Announced announced_by(StandIns& stand_ins, Stack results, c10::DeviceIndex device, bool writes) {
  for (const StandIns::Pair& pair : stand_ins.pairs()) {
    if (writes) take_shape(pair.original, pair.stand_in);
  }
  Announced announced;
  announced.computes = writes;
  for (const c10::IValue& result : results) {
    announced.fresh.push_back(changed(result, [&](const at::Tensor& tensor) {
      if (stand_ins.original(tensor).defined()) return at::Tensor();
      announced.computes = true;
      return empty_like_result(tensor, device);
    }));
  }
  // A second walk beside the first, so that lists stay lists.
  for (size_t i = 0; i < results.size(); i++) {
    std::vector<at::Tensor> fresh;
    if (announced.fresh[i].isTensor()) {
      fresh.push_back(announced.fresh[i].toTensor());
    } else if (announced.fresh[i].isTensorList()) {
      fresh = announced.fresh[i].toTensorVector();
    }
    size_t next = 0;
    announced.results.push_back(changed(results[i], [&](const at::Tensor& tensor) {
      const at::Tensor& made = fresh[next++];
      return made.defined() ? made : stand_ins.original(tensor);
    }));
  }
  return announced;
}

Stack written_arguments(const c10::OperatorHandle& op, const Stack& arguments) {
  Stack written;
  for (size_t i = 0; i < arguments.size(); i++) {
    if (writes(op.schema().arguments()[i])) written.push_back(arguments[i]);
  }
  return written;
}

// Runs at the end of its queue while the caller waits: a read-back.
void run_and_wait(const c10::OperatorHandle& op, const Stack& arguments, c10::DeviceIndex device, Stack* stack) {
  count_read_back();
  Queue& queue = current_queue(device);
  StandIns stand_ins(StandIns::Over::device);
  const auto late = std::make_shared<Stack>(late_arguments(stand_ins, arguments));
  push_late(queue, name_of(op), [op, late] { call_below_autograd(op, *late); });
  queue.synchronize();
  for (const c10::IValue& computed : *late) {
    stack->push_back(changed(computed, [&](const at::Tensor& tensor) {
      const at::Tensor known = stand_ins.original(tensor);
      if (known.defined()) return known;
      const at::Tensor result = empty_like_result(tensor, device);
      StandIns over_result(StandIns::Over::device);
      push_late(queue, name_of(op), [to = over_result.of(result), tensor] { to.copy_(tensor); });
      return result;
    }));
  }
}

// A number of the host, as it is now.
at::Tensor by_value(const at::Tensor& number) {
  const at::AutoDispatchBelowADInplaceOrView below;
  at::Tensor copy = number.clone();
  copy.unsafeGetTensorImpl()->set_wrapped_number(number.unsafeGetTensorImpl()->is_wrapped_number());
  return copy;
}

void fill_tensor(const at::Tensor& announced, const at::Tensor& computed) {
  if (!announced.defined()) return;
  TORCH_CHECK(computed.defined() && computed.sizes() == announced.sizes() && computed.scalar_type() == announced.scalar_type(),
              "expected the result that was announced, ", describe_tensor(announced), ", got ",
              computed.defined() ? describe_tensor(computed) : "none", " (give the operator a rule on the meta device)");
  announced.copy_(computed);
}

}  // namespace

torch::jit::Stack take_arguments(const c10::OperatorHandle& op, Stack* stack) {
  const size_t count = op.schema().arguments().size();
  Stack arguments(std::make_move_iterator(stack->end() - static_cast<std::ptrdiff_t>(count)),
                  std::make_move_iterator(stack->end()));
  torch::jit::drop(*stack, count);
  return arguments;
}

c10::DeviceIndex device_of(const c10::OperatorHandle& op, const Stack& arguments) {
  c10::DeviceIndex device = -1;
  for (const c10::IValue& argument : arguments) {
    if (argument.isDevice() && argument.toDevice().is_privateuseone()) device = argument.toDevice().index();
    each_tensor(argument, [&](const at::Tensor& tensor) {
      if (tensor.is_cpu() && tensor.dim() == 0) return;
      TORCH_CHECK(is_sim(tensor) && (device < 0 || device == tensor.device().index()), "[", name_of(op),
                  "] expected all tensors on one device, got ", tensor.device(), " beside sim (copy it first)");
      device = tensor.device().index();
    });
  }
  return device < 0 ? current_device() : device;
}

uint64_t push_late(Queue& queue, const std::string& name, std::function<void()> run) {
  count_late_operator();
  // The choices of the calling thread are those of its work.
  return queue.push(name, [threads = num_threads(), invariant = is_invariant(), run = std::move(run)] {
    if (num_threads() != threads) set_num_threads(threads);
    set_invariant(invariant);
    run();
  });
}

torch::jit::Stack late_arguments(StandIns& stand_ins, const Stack& arguments) {
  Stack late;
  for (const c10::IValue& argument : arguments) {
    const bool is_device = argument.isDevice();
    late.push_back(is_device ? stand_ins.of(argument) : changed(argument, [&](const at::Tensor& tensor) {
      return is_sim(tensor) ? stand_ins.of(tensor) : by_value(tensor);
    }));
  }
  return late;
}

Announced announce(const c10::OperatorHandle& op, const Stack& arguments) {
  const c10::DeviceIndex device = device_of(op, arguments);
  const bool ruled = op.hasComputedKernelForDispatchKey(c10::DispatchKey::Meta) && !WithoutRule::operators().has(op);
  if (!ruled && is_in_place(op.schema())) {
    Stack written = written_arguments(op, arguments);
    if (op.schema().returns().empty()) written.clear();
    return {written, Stack(written.size()), true};
  }
  if (ruled) {
    StandIns stand_ins(StandIns::Over::nothing);
    Stack results = stand_ins.of(arguments);
    try {
      call_below_autograd(op, results);
      return announced_by(stand_ins, std::move(results), device, writes_any(op.schema()));
    } catch (const c10::NotImplementedError&) {
      WithoutRule::operators().add(op);
      return announce(op, arguments);
    }
  }
  StandIns stand_ins(StandIns::Over::zeros);
  Stack results = stand_ins.of(arguments);
  call_below_autograd(op, results);
  return announced_by(stand_ins, std::move(results), device, writes_any(op.schema()));
}

void fill(const Stack& announced, const Stack& computed) {
  for (size_t i = 0; i < announced.size(); i++) {
    if (announced[i].isTensor()) {
      fill_tensor(announced[i].toTensor(), computed[i].toTensor());
    } else if (announced[i].isTensorList()) {
      const auto to = announced[i].toTensorVector(), from = computed[i].toTensorVector();
      for (size_t element = 0; element < to.size(); element++) fill_tensor(to[element], from.at(element));
    }
  }
}

void run_late(const c10::OperatorHandle& op, Stack* stack) {
  const Stack arguments = take_arguments(op, stack);
  const c10::DeviceIndex device = device_of(op, arguments);
  const c10::DeviceGuard guard(c10::Device(c10::DeviceType::PrivateUse1, device));
  if (needs_values(op, arguments)) return run_and_wait(op, arguments, device, stack);
  Announced announced = announce(op, arguments);
  if (announced.computes) {
    StandIns stand_ins(StandIns::Over::device);
    Stack late = late_arguments(stand_ins, arguments);
    Stack fresh = stand_ins.of(announced.fresh);
    // A captured task runs more than once.
    push_late(current_queue(device), name_of(op), [op, late = std::move(late), fresh = std::move(fresh)] {
      Stack values = late;
      call_below_autograd(op, values);
      const at::AutoDispatchBelowADInplaceOrView below;
      fill(fresh, values);
    });
  }
  for (c10::IValue& result : announced.results) stack->push_back(std::move(result));
}

}  // namespace troupe::sim

#endif
