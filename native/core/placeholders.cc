#include "core/placeholders.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_strided.h>

namespace troupe {
namespace {

at::Tensor without_memory(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_meta()) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
}

bool holds_placeholder(const c10::IValue& argument) {
  if (argument.isTensor()) return argument.toTensor().is_meta();
  if (!argument.isTensorList()) return false;
  for (const at::Tensor& tensor : argument.toTensorList()) {
    if (tensor.is_meta()) return true;
  }
  return false;
}

c10::IValue without_memory(const c10::IValue& argument) {
  if (argument.isTensor()) return without_memory(argument.toTensor());
  if (!argument.isTensorList()) return argument;
  c10::List<at::Tensor> list;
  for (const at::Tensor& tensor : argument.toTensorList()) list.push_back(without_memory(tensor));
  return list;
}

}  // namespace

void agree_on_placeholders(torch::jit::Stack& arguments) {
  bool found = false;
  for (const c10::IValue& argument : arguments) found = found || holds_placeholder(argument);
  if (!found) return;
  for (c10::IValue& argument : arguments) argument = without_memory(argument);
}

}  // namespace troupe
