// JavaScript's typed arrays as tensors over the same memory.
#pragma once

#include <ATen/core/Tensor.h>
#include <napi.h>

namespace troupe {

// A 1-D tensor over the memory of a typed array, SharedArrayBuffer-backed ones included; valid during this call only.
// A Uint16Array has no number type of its own here: its bits are taken as `dtype` when that is bfloat16, float16 or int16.
// Throws CodedError TENSOR_ARGUMENT for anything else.
at::Tensor view_of_typed_array(const Napi::Value& value, at::ScalarType dtype);

}  // namespace troupe
