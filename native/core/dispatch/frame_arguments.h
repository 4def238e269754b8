// The arguments of a call, from the frame to the operator's stack.
#pragma once

#include <ATen/core/stack.h>

#include <string>

#include "core/dispatch/frame.h"
#include "core/tensors/handles.h"
#include "core/dispatch/operators.h"

namespace troupe {

// An operator, the frame with its arguments, and what these name by number.
struct Call {
  const OperatorPlan& plan;
  Frame frame;
  HandleTable& handles;
  const StringTable& strings;
};

// Pushes what the installed operator takes, in its order. Throws CodedError: what a handle says of its tensor,
// TENSOR_ARGUMENT, TENSOR_OP_CHANGED, NATIVE_MISMATCH.
void push_arguments(const Call& call, torch::jit::Stack& stack);

// Which tensors the call was given, for errors: "self float32[4,3] (ndim 2), other ...". Reads the frame again.
std::string describe_operands(const Call& call);

}  // namespace troupe
