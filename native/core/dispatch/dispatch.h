// Calls any operator of libtorch's dispatcher with arguments written by JavaScript into the argument frame.
#pragma once

#include <cstdint>

#include "core/dispatch/frame.h"
#include "core/tensors/handles.h"

namespace troupe {

// Runs operator `index`. Returns the first result: a handle, a number, or the count of a Tensor[] whose handles are in the
// frame; 0 when the operator only changes its arguments. Throws CodedError, TENSOR_OP_FAILED for what libtorch refuses,
// naming the op and the ndim, shape and dtype of every tensor argument.
double call_operator(uint32_t index, Frame frame, HandleTable& handles, const StringTable& strings);

}  // namespace troupe
