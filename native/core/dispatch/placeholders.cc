#include "core/dispatch/placeholders.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>

#include "core/autograd/differentiable.h"
#include "core/dispatch/meter.h"
#include "core/tensors/arguments.h"

namespace troupe {
namespace {

using Change = at::Tensor (*)(const at::Tensor&);

at::Tensor without_memory(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_meta()) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
}

at::Tensor zeros_like(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_meta()) return tensor;
  return at::zeros(tensor.sizes(), tensor.options().device(at::kCPU));
}

void change_all(torch::jit::Stack& stack, Change change) {
  for (c10::IValue& value : stack) value = troupe::changed(value, change);
}

bool is_placeholder(const c10::IValue& argument) {
  bool is_any = false;
  each_tensor(argument, [&](const at::Tensor& tensor) { is_any = is_any || (tensor.defined() && tensor.is_meta()); });
  return is_any;
}

Tensors floating(const torch::jit::Stack& stack) {
  Tensors tensors;
  for (const c10::IValue& value : stack) {
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().is_floating_point()) tensors.push_back(value.toTensor());
  }
  return tensors;
}

}  // namespace

bool meets_placeholder(const torch::jit::Stack& arguments) {
  for (const c10::IValue& argument : arguments) {
    if (is_placeholder(argument)) return true;
  }
  return false;
}

void call_on_placeholders(const c10::OperatorHandle& op, bool writes, torch::jit::Stack& stack) {
  // libtorch itself refuses to write a tensor without memory into one with memory.
  if (writes) return op.callBoxed(stack);
  change_all(stack, without_memory);
  torch::jit::Stack arguments = stack;
  try {
    op.callBoxed(stack);
  } catch (const c10::NotImplementedError&) {
    change_all(arguments, zeros_like);
    op.callBoxed(arguments);
    change_all(arguments, without_memory);
    // The tensors that it keeps for backward are unknown: assume all of its inputs and outputs.
    const Tensors inputs = floating(stack), outputs = floating(arguments);
    Tensors saved = inputs;
    saved.insert(saved.end(), outputs.begin(), outputs.end());
    record("an operator without a rule of shapes", inputs, outputs, saved,
           [count = inputs.size()](const Tensors&, const Tensors& saved) -> Tensors {
             Tensors gradients;
             for (size_t i = 0; i < count; i++) gradients.push_back(without_memory(saved[i]));
             for (at::Tensor& gradient : gradients) gradient = at::empty_like(gradient);
             return gradients;
           });
    count_unruled(op.schema().name());
    stack = std::move(arguments);
  }
}

}  // namespace troupe
