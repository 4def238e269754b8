// The tensors of an operator's argument, in lists too.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

namespace troupe {

// Whether the value is a list of tensors with gaps, of any type: IValue::isOptionalTensorList knows only libtorch's own.
inline bool is_list_of_maybe_tensors(const c10::IValue& value) {
  if (!value.isList()) return false;
  const auto optional = value.toList().elementType()->cast<c10::OptionalType>();
  return optional != nullptr && optional->getElementType()->kind() == c10::TypeKind::TensorType;
}

// Changes the tensors of an argument, in lists too.
template <class Change>
c10::IValue changed(const c10::IValue& value, const Change& change) {
  if (value.isTensor()) return value.toTensor().defined() ? c10::IValue(change(value.toTensor())) : value;
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(tensor.defined() ? change(tensor) : tensor);
    return list;
  }
  if (is_list_of_maybe_tensors(value)) {
    c10::impl::GenericList list(value.toList().elementType());
    for (const c10::IValue element : value.toList()) list.push_back(changed(element, change));
    return list;
  }
  return value;
}

// Visits them.
template <class Visit>
void each_tensor(const c10::IValue& value, const Visit& visit) {
  changed(value, [&](const at::Tensor& tensor) {
    visit(tensor);
    return tensor;
  });
}

}  // namespace troupe
