#include "binding/typed_array.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include "core/dispatch/describe.h"
#include "core/error.h"

namespace troupe {
namespace {

[[noreturn]] void refuse_array(const std::string& came) {
  throw CodedError("TENSOR_ARGUMENT",
                   "[tensor] expected a typed array, one of raw 16 bits with dtype bfloat16, float16 or int16, got " + came);
}

bool takes_raw_bits(at::ScalarType dtype) {
  return dtype == at::ScalarType::BFloat16 || dtype == at::ScalarType::Half || dtype == at::ScalarType::Short;
}

at::ScalarType element_type(napi_typedarray_type type, at::ScalarType dtype) {
  switch (type) {
    case napi_float32_array: return at::ScalarType::Float;
    case napi_float64_array: return at::ScalarType::Double;
    case napi_bigint64_array: return at::ScalarType::Long;
    case napi_int32_array: return at::ScalarType::Int;
    case napi_int16_array: return at::ScalarType::Short;
    case napi_int8_array: return at::ScalarType::Char;
    case napi_uint8_array:
    case napi_uint8_clamped_array: return at::ScalarType::Byte;
    case napi_uint16_array:
      if (takes_raw_bits(dtype)) return dtype;
      refuse_array("a Uint16Array for " + dtype_name(dtype));
    default: refuse_array("an array kind that no dtype matches");
  }
}

}  // namespace

at::Tensor view_of_typed_array(const Napi::Value& value, at::ScalarType dtype) {
  napi_typedarray_type type;
  size_t length = 0;
  void* data = nullptr;
  // The plain C call: it also takes arrays over a SharedArrayBuffer, which the C++ wrapper does not.
  if (napi_get_typedarray_info(value.Env(), value, &type, &length, &data, nullptr, nullptr) != napi_ok) {
    refuse_array("another value");
  }
  const auto options = at::TensorOptions().dtype(element_type(type, dtype));
  // A zero-length array may have no memory at all.
  return length == 0 ? at::empty({0}, options) : at::from_blob(data, {static_cast<int64_t>(length)}, options);
}

}  // namespace troupe
