// Copies between a device and the host that nobody waits for at once.
#include "core/device/beside.h"

#include <ATen/core/grad_mode.h>

#include "binding/arguments.h"
#include "binding/environment.h"
#include "binding/errors.h"
#include "binding/init.h"
#include "binding/under_way.h"
#include "core/dispatch/describe.h"
#include "core/error.h"

namespace troupe {
namespace {

// emptyPinned(dtype, numel, like): a new 1-D tensor of the host, which the device of `like` copies from and to by itself.
Napi::Value EmptyPinned(const Napi::CallbackInfo& info) {
  const auto dtype = static_cast<at::ScalarType>(info[0].As<Napi::Number>().Int32Value());
  return Environment::give(info, empty_pinned(dtype, whole_number(info, 1), Environment::tensor(info, 2, "emptyPinned").device()));
}

// copyBeside(into, from): what followCopy and copyArrived take.
Napi::Value CopyBeside(const Napi::CallbackInfo& info) {
  const at::Tensor& into = Environment::writable_tensor(info, 0, "copyBeside");
  const at::Tensor& from = Environment::tensor(info, 1, "copyBeside");
  const bool alike = into.scalar_type() == from.scalar_type() && into.numel() == from.numel() && into.is_contiguous() &&
                     from.is_contiguous() && into.is_cpu() != from.is_cpu();
  if (!alike) {
    throw CodedError("TENSOR_ARGUMENT",
                     "[copyBeside] expected two contiguous tensors of one dtype and size, one of the host and one of a device, got " +
                         describe_tensor(into) + " and " + describe_tensor(from));
  }
  // No memory is held by it: it goes when garbage is collected.
  const at::NoGradGuard no_grad;
  auto* const over = new Fence(copy_beside(into.detach().view(-1), from.detach().view(-1)));
  return Napi::External<Fence>::New(info.Env(), over, [](Napi::Env, Fence* fence) { delete fence; });
}

const Fence& end_of_copy(const Napi::CallbackInfo& info) { return *info[0].As<Napi::External<Fence>>().Data(); }

// followCopy(copy): makes this thread's stream wait for it.
Napi::Value FollowCopy(const Napi::CallbackInfo& info) {
  end_of_copy(info).hold_back();
  return info.Env().Undefined();
}

// copyArrived(copy): a promise.
Napi::Value CopyArrived(const Napi::CallbackInfo& info) {
  return UnderWay::off_thread(info.Env()).begin(
      info.Env(), 1, [over = end_of_copy(info)](size_t) { over.wait(); }, [](Napi::Env env) { return env.Undefined(); });
}

}  // namespace

void InitBeside(Napi::Env env, Napi::Object exports) {
  define<EmptyPinned>(env, exports, "emptyPinned");
  define<CopyBeside>(env, exports, "copyBeside");
  define<FollowCopy>(env, exports, "followCopy");
  define<CopyArrived>(env, exports, "copyArrived");
}

}  // namespace troupe
