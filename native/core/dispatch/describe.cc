#include "core/dispatch/describe.h"

#include <c10/util/Exception.h>

namespace troupe {
namespace {

constexpr size_t kMaxListed = 8;

}  // namespace

std::string dtype_name(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Float: return "float32";
    case c10::ScalarType::Double: return "float64";
    case c10::ScalarType::BFloat16: return "bfloat16";
    case c10::ScalarType::Half: return "float16";
    case c10::ScalarType::Long: return "int64";
    case c10::ScalarType::Int: return "int32";
    case c10::ScalarType::Short: return "int16";
    case c10::ScalarType::Char: return "int8";
    case c10::ScalarType::Byte: return "uint8";
    case c10::ScalarType::Bool: return "bool";
    default: return c10::toString(dtype);
  }
}

std::string describe_tensor(const at::Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  std::string text = dtype_name(tensor.scalar_type()) + "[";
  for (int64_t i = 0; i < tensor.dim(); ++i) text += (i == 0 ? "" : ",") + std::to_string(tensor.size(i));
  return text + "] (ndim " + std::to_string(tensor.dim()) + ")";
}

std::string describe_argument(const std::string& name, const c10::IValue& value) {
  if (value.isTensor()) return name + " " + describe_tensor(value.toTensor());
  if (!value.isTensorList()) return "";
  const auto list = value.toTensorVector();
  std::string text = name + " [";
  for (size_t i = 0; i < list.size() && i < kMaxListed; ++i) text += (i == 0 ? "" : ", ") + describe_tensor(list[i]);
  return text + (list.size() > kMaxListed ? ", … " + std::to_string(list.size()) + " in all]" : "]");
}

std::string plain_message(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  std::string text = torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
  // Errors that crossed TorchScript carry the trace inside the text.
  text = text.substr(0, text.find("\nException raised from"));
  while (!text.empty() && (text.back() == '\n' || text.back() == '.')) text.pop_back();
  return text;
}

}  // namespace troupe
