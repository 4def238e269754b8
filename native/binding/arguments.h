// Reads arguments that several of the functions given to JavaScript take.
#pragma once

#include <napi.h>

#include <cstdint>
#include <vector>

#include "core/tensors/refs.h"

namespace troupe {

inline int64_t whole_number(const Napi::CallbackInfo& info, size_t index) { return info[index].As<Napi::Number>().Int64Value(); }

// An array of whole numbers.
inline std::vector<int64_t> whole_numbers(const Napi::Value& value) {
  const auto array = value.As<Napi::Array>();
  std::vector<int64_t> numbers(array.Length());
  for (uint32_t i = 0; i < array.Length(); ++i) numbers[i] = array.Get(i).As<Napi::Number>().Int64Value();
  return numbers;
}

// A ref, given by the first two arguments: id and generation.
inline RefId ref_argument(const Napi::CallbackInfo& info) {
  return {info[0].As<Napi::Number>().Uint32Value(), info[1].As<Napi::Number>().Uint32Value()};
}

}  // namespace troupe
