// Computing with tensors without memory beside tensors that have some.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace troupe {

// Whether one of an operator's arguments is a placeholder, a tensor of libtorch's meta device.
bool meets_placeholder(const torch::jit::Stack& arguments);

// Calls an operator with at least one placeholder among its arguments. The results are placeholders, and all arguments are
// treated as such. Where libtorch has no rule from
// shape to shape, the operator is computed once on zeros. `writes`: whether it changes an argument in place.
void call_on_placeholders(const c10::OperatorHandle& op, bool writes, torch::jit::Stack& stack);

}  // namespace troupe
