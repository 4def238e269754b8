// Tensors that stand for those of the device, with the same shapes over memory that lies towards each other as theirs does:
// without memory, to learn the shape of a result; over zeros, where libtorch has no rule for that; or over the device's own
// memory as its queue reaches it, to compute.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <vector>

#include "core/tensors/arguments.h"

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

  // The device's tensor behind a result: one of the arguments, a view of one, or undefined where it is neither.
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

}  // namespace troupe::sim
