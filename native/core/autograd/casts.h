// Autocast for devices that libtorch has none for: the CPU's choice of every operator.
#pragma once

#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DispatchKeySet.h>
#include <torch/library.h>

#include <set>
#include <string>

#include "core/autograd/autocast.h"
#include "core/tensors/arguments.h"

namespace troupe {

// `Device::has(tensor)`: whether it casts a tensor.
template <class Device>
class Casts {
 public:
  // Into the library of its autocast key, for operators of libtorch's.
  static void register_all(torch::Library& aten) {
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
      if (name.name.rfind("aten::", 0) != 0) continue;
      const auto op = c10::Dispatcher::singleton().findSchema(name);
      if (!op || !op->hasKernelForDispatchKey(c10::DispatchKey::AutocastCPU)) continue;
      const std::string full = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
      aten.impl(full.c_str(), kernel_of(name.name.substr(sizeof("aten::") - 1)));
    }
  }

 private:
  static bool is_castable(const at::Tensor& tensor) {
    return Device::has(tensor) && tensor.is_floating_point() && tensor.scalar_type() != at::kDouble;
  }

  template <class Choose>
  static void call_with(const c10::OperatorHandle& op, torch::jit::Stack* stack, const Choose& choose) {
    const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
    const at::ScalarType dtype = choose(arguments);
    const c10::impl::ExcludeDispatchKeyGuard no_more_casts(c10::autocast_dispatch_keyset);
    for (size_t i = stack->size() - arguments.size(); i < stack->size(); i++) {
      (*stack)[i] = changed((*stack)[i], [&](const at::Tensor& tensor) { return is_castable(tensor) ? tensor.to(dtype) : tensor; });
    }
    op.callBoxed(stack);
  }

  static void in_low_precision(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    call_with(op, stack, [](c10::ArrayRef<c10::IValue>) { return *autocast_dtype(); });
  }

  static void in_float32(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    call_with(op, stack, [](c10::ArrayRef<c10::IValue>) { return at::kFloat; });
  }

  static void in_widest(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    call_with(op, stack, [](c10::ArrayRef<c10::IValue> arguments) {
      at::ScalarType widest = *autocast_dtype();
      for (const c10::IValue& argument : arguments) {
        each_tensor(argument, [&](const at::Tensor& tensor) {
          if (is_castable(tensor) && tensor.scalar_type() == at::kFloat) widest = at::kFloat;
        });
      }
      return widest;
    });
  }

  static torch::CppFunction kernel_of(const std::string& name) {
    static const std::set<std::string> low{
        "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "_convolution", "mm",
        "bmm", "addmm", "addbmm", "baddbmm", "matmul", "linear", "linalg_vecdot", "mkldnn_rnn_layer",
        "scaled_dot_product_attention", "_native_multi_head_attention"};
    static const std::set<std::string> widest{"stack", "cat", "index_copy"};
    if (low.count(name) > 0) return torch::CppFunction::makeFromBoxedFunction<&in_low_precision>();
    if (widest.count(name) > 0) return torch::CppFunction::makeFromBoxedFunction<&in_widest>();
    return torch::CppFunction::makeFromBoxedFunction<&in_float32>();
  }
};

}  // namespace troupe
