// Copies memory in native threads, without blocking JavaScript.
#include <ATen/core/Tensor.h>

#include <cstring>
#include <memory>
#include <utility>

#include "binding/arguments.h"
#include "binding/environment.h"
#include "binding/errors.h"
#include "binding/init.h"
#include "binding/under_way.h"
#include "core/dispatch/describe.h"
#include "core/error.h"

namespace troupe {
namespace {

// copyOffThread(from, into, begin, numel): a promise; both tensors' memory lives until then.
Napi::Value CopyOffThread(const Napi::CallbackInfo& info) {
  const auto tensors = std::make_shared<std::pair<at::Tensor, at::Tensor>>(Environment::tensor(info, 0, "copyOffThread"),
                                                                           Environment::writable_tensor(info, 1, "copyOffThread"));
  const auto& [from, into] = *tensors;
  const int64_t begin = whole_number(info, 2);
  const int64_t numel = whole_number(info, 3);
  const bool alike = from.scalar_type() == into.scalar_type() && from.numel() == into.numel() && from.is_contiguous() &&
                     into.is_contiguous() && from.device().is_cpu() && into.device().is_cpu();
  if (!alike || begin < 0 || numel < 0 || numel > from.numel() - begin) {
    throw CodedError("TENSOR_ARGUMENT",
                     "[copyOffThread] expected a stretch within two contiguous tensors of one dtype and size in host memory, got " +
                         std::to_string(numel) + " elements from " + std::to_string(begin) + " on of " + describe_tensor(from) +
                         " and " + describe_tensor(into));
  }
  const auto item_bytes = static_cast<int64_t>(from.element_size());
  const char* source = static_cast<const char*>(from.data_ptr()) + begin * item_bytes;
  char* target = static_cast<char*>(into.data_ptr()) + begin * item_bytes;
  const auto size_bytes = static_cast<size_t>(numel * item_bytes);
  return UnderWay::off_thread(info.Env())
      .begin(
          info.Env(), 1, [source, target, size_bytes](size_t) { std::memcpy(target, source, size_bytes); },
          [tensors](Napi::Env env) { return env.Undefined(); });
}

}  // namespace

void InitOffThread(Napi::Env env, Napi::Object exports) { define<CopyOffThread>(env, exports, "copyOffThread"); }

}  // namespace troupe
