// Words for errors: what a tensor is, and what libtorch said without its stack trace.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <exception>
#include <string>

namespace troupe {

// "float32[4,3] (ndim 2)"
std::string describe_tensor(const at::Tensor& tensor);

// "self float32[4,3] (ndim 2)" for a tensor or a list of tensors, "" for any other argument.
std::string describe_argument(const std::string& name, const c10::IValue& value);

// "float32" for c10::ScalarType::Float, and so on: the names of src/compute/tensor/dtype.ts where it has one.
std::string dtype_name(c10::ScalarType dtype);

// The message of an exception of libtorch or the standard library, without any stack trace.
std::string plain_message(const std::exception& error);

}  // namespace troupe
