// Computing with tensors without memory beside tensors that have some.
#pragma once

#include <ATen/core/stack.h>

namespace troupe {

// Where one argument of an operator is a placeholder, on libtorch's meta device, and another is not, that other becomes a
// placeholder too: what is computed from a value that is not there is not there either.
void agree_on_placeholders(torch::jit::Stack& arguments);

}  // namespace troupe
