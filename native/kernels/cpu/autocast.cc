// Autocast's rules for Troupe's own operators. Operators that multiply matrices compute in the low-precision dtype, as libtorch's do;
// those that add or normalise rows cast their inputs to the widest dtype among them. An operator that is not named here computes
// in the dtypes of its inputs.

#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "core/autograd/autocast.h"
#include "core/dispatch/meter.h"
#include "core/torch_version.h"

namespace troupe {
namespace {

// float64 is left alone, as by libtorch; so are the shapes that stand for what other ranks hold, unless they are metered.
bool is_castable(const c10::IValue& value) {
  if (!value.isTensor()) return false;
  const at::Tensor& tensor = value.toTensor();
  return tensor.defined() && (!tensor.is_meta() || meters()) && tensor.is_floating_point() && tensor.scalar_type() != at::kDouble;
}

template <class Choose>
void call_with(const c10::OperatorHandle& op, c10::Stack* stack, const Choose& choose) {
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  const at::ScalarType dtype = choose(arguments);
  const c10::impl::ExcludeDispatchKeyGuard no_more_casts(c10::autocast_dispatch_keyset);
  for (size_t i = stack->size() - arguments.size(); i < stack->size(); i++) {
    c10::IValue& value = (*stack)[i];
    if (is_castable(value)) value = value.toTensor().to(dtype);
  }
  op.callBoxed(stack);
}

void in_narrow(const c10::OperatorHandle& op, c10::Stack* stack) {
  call_with(op, stack, [](c10::ArrayRef<c10::IValue>) { return *autocast_dtype(); });
}

void in_widest(const c10::OperatorHandle& op, c10::Stack* stack) {
  call_with(op, stack, [](c10::ArrayRef<c10::IValue> arguments) {
    for (const c10::IValue& value : arguments) {
      if (is_castable(value) && value.toTensor().scalar_type() == at::kFloat) return at::kFloat;
    }
    return *autocast_dtype();
  });
}

void cast_arguments(torch::Library& m) {
  for (const char* op : {"attention", "masked_attention", "dropped_attention", "linear_cross_entropy", "bias_gelu", "gather_matmul", "matmul_reduce_scatter"}) {
    m.impl(op, torch::CppFunction::makeFromBoxedFunction<&in_narrow>());
  }
  for (const char* op : {"layer_norm", "add_layer_norm", "rms_norm", "add_rms_norm", "swiglu"}) {
    m.impl(op, torch::CppFunction::makeFromBoxedFunction<&in_widest>());
  }
}

}  // namespace

TORCH_LIBRARY_IMPL(troupe, AutocastCPU, m) { cast_arguments(m); }

TORCH_LIBRARY_IMPL(troupe, AutocastCUDA, m) { cast_arguments(m); }

#if TROUPE_TORCH_AT_LEAST(2, 4)
TORCH_LIBRARY_IMPL(troupe, AutocastPrivateUse1, m) { cast_arguments(m); }

// kMeteredAutocast
TORCH_LIBRARY_IMPL(troupe, AutocastHPU, m) { cast_arguments(m); }
#endif

}  // namespace troupe
