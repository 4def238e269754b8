// Tensors that stand for those of the device, with the same shapes over memory that lies towards each other as theirs does:
// without memory, to learn the shape of a result; over zeros, where libtorch has no rule for that; or over the device's own
// memory as its queue reaches it, to compute.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <vector>

namespace troupe::sim {

inline bool is_sim(const at::Tensor& tensor) { return tensor.defined() && tensor.device().is_privateuseone(); }

class StandIns {
 public:
  enum class Over { nothing, zeros, device };

  explicit StandIns(Over over) : over_(over) {}

  // For a tensor of the device; of the host, the tensor itself. Twice the same for the same.
  at::Tensor of(const at::Tensor& tensor);
  // The same for whatever an argument is.
  c10::IValue of(const c10::IValue& argument);
  torch::jit::Stack of(const torch::jit::Stack& arguments);

  // What a result says of the device: one of the arguments, a view of one, or undefined where it is neither.
  at::Tensor original(const at::Tensor& result) const;

  // Every tensor of the device that has a stand-in, with it.
  struct Pair {
    at::Tensor original, stand_in;
  };
  const std::vector<Pair>& pairs() const { return pairs_; }

 private:
  c10::Storage memory_of(const at::Tensor& tensor);

  const Over over_;
  std::vector<Pair> pairs_;
  struct Memory {
    c10::Storage original, stand_in;
    c10::DispatchKeySet keys;
  };
  std::vector<Memory> memories_;
};

// Of a list with gaps, whoever made its type: IValue::isOptionalTensorList knows only libtorch's own.
bool is_list_of_maybe_tensors(const c10::IValue& value);

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

}  // namespace troupe::sim
