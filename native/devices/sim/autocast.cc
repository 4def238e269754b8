// Autocast on the device: the CPU's choice for every operator, so that its bits are the CPU's.
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <set>
#include <string>

#include "core/torch_version.h"
#include "devices/sim/kernels.h"
#include "devices/sim/stand_ins.h"

#if TROUPE_TORCH_AT_LEAST(2, 9)

namespace troupe::sim {
namespace {

constexpr c10::DeviceType kDevice = c10::DeviceType::PrivateUse1;

bool is_castable(const at::Tensor& tensor) {
  return is_sim(tensor) && tensor.is_floating_point() && tensor.scalar_type() != at::kDouble;
}

template <class Choose>
void call_with(const c10::OperatorHandle& op, torch::jit::Stack* stack, const Choose& choose) {
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  const at::ScalarType dtype = choose(arguments);
  const c10::impl::ExcludeDispatchKeyGuard no_more_casts(c10::DispatchKey::AutocastPrivateUse1);
  for (size_t i = stack->size() - arguments.size(); i < stack->size(); i++) {
    (*stack)[i] = changed((*stack)[i], [&](const at::Tensor& tensor) {
      return is_castable(tensor) ? at::autocast::cached_cast(dtype, tensor, kDevice) : tensor;
    });
  }
  op.callBoxed(stack);
}

void in_low_precision(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  call_with(op, stack, [](c10::ArrayRef<c10::IValue>) { return at::autocast::get_autocast_dtype(kDevice); });
}

void in_float32(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  call_with(op, stack, [](c10::ArrayRef<c10::IValue>) { return at::kFloat; });
}

void in_widest(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  call_with(op, stack, [](c10::ArrayRef<c10::IValue> arguments) {
    at::ScalarType widest = at::autocast::get_autocast_dtype(kDevice);
    for (const c10::IValue& argument : arguments) {
      each_tensor(argument, [&](const at::Tensor& tensor) {
        if (is_castable(tensor) && tensor.scalar_type() == at::kFloat) widest = at::kFloat;
      });
    }
    return widest;
  });
}

torch::CppFunction kernel_of(const std::string& name) {
  static const std::set<std::string> low{
      "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "_convolution", "mm",
      "bmm", "addmm", "addbmm", "baddbmm", "matmul", "linear", "linalg_vecdot", "mkldnn_rnn_layer",
      "scaled_dot_product_attention", "_native_multi_head_attention"};
  static const std::set<std::string> widest{"stack", "cat", "index_copy"};
  if (low.count(name) > 0) return torch::CppFunction::makeFromBoxedFunction<&in_low_precision>();
  if (widest.count(name) > 0) return torch::CppFunction::makeFromBoxedFunction<&in_widest>();
  return torch::CppFunction::makeFromBoxedFunction<&in_float32>();
}

}  // namespace

void register_autocast(torch::Library& aten) {
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0) continue;
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op || !op->hasKernelForDispatchKey(c10::DispatchKey::AutocastCPU)) continue;
    const std::string plain = name.name.substr(sizeof("aten::") - 1);
    aten.impl(qualified(name).c_str(), kernel_of(plain));
  }
}

}  // namespace troupe::sim

#endif
