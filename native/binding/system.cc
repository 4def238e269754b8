// The addon's version and build, its self-check, and the number of threads it may use.
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#ifdef __linux__
#include <sched.h>
#endif

#include <cerrno>
#include <cstring>

#include "binding/environment.h"
#include "binding/errors.h"
#include "binding/init.h"
#include "comm/gloo.h"
#include "core/device/device.h"
#include "core/error.h"
#include "core/threads.h"
#include "core/torch_version.h"
#include "kernels/cpu/bfloat16_matmul.h"
#include "kernels/cpu/isa.h"

namespace troupe {
namespace {

// setNumThreads(count), for this thread.
Napi::Value SetNumThreads(const Napi::CallbackInfo& info) {
  set_num_threads(info[0].As<Napi::Number>().Int32Value());
  return info.Env().Undefined();
}

Napi::Value NumThreads(const Napi::CallbackInfo& info) { return Napi::Number::New(info.Env(), num_threads()); }

#ifdef __linux__

// bindThread(processors), for this thread and those that it starts from now on.
Napi::Value BindThread(const Napi::CallbackInfo& info) {
  const auto processors = info[0].As<Napi::Array>();
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  for (uint32_t i = 0; i < processors.Length(); i++) CPU_SET(processors.Get(i).As<Napi::Number>().Int32Value(), &allowed);
  if (sched_setaffinity(0, sizeof allowed, &allowed) != 0) {
    throw CodedError("NATIVE_FAILED", std::string("[bindThread] expected processors that this thread may use, got \"") +
                                          std::strerror(errno) + "\" (see what the launcher leaves to the program)");
  }
  return info.Env().Undefined();
}

#else

// No other system lets a thread be bound: nobody asks for it there.
Napi::Value BindThread(const Napi::CallbackInfo& info) { return info.Env().Undefined(); }

#endif

// nativeInfo(): { torch, gloo, cuda, capability, numThreads }
Napi::Value NativeInfo(const Napi::CallbackInfo& info) {
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("torch", TORCH_VERSION);
  result.Set("gloo", comm::gloo_built());
  result.Set("cuda", has_device_kind("cuda"));
  result.Set("capability", isa_name());
  result.Set("bfloat16Products", multiplies_bfloat16_in_panels() ? "float32 panels" : "libtorch");
  result.Set("numThreads", num_threads());
  return result;
}

void check_matmul() {
  const at::Tensor a = at::arange(4, at::kFloat).view({2, 2});
  if (at::matmul(a, a).sum().item().toDouble() != 2 + 3 + 6 + 11) {
    throw CodedError("NATIVE_FAILED", "[selfTest] expected the elements of a 2x2 product to sum to 22, got another sum (libtorch computes wrongly)");
  }
}

// selfTest(): { matmul, gloo }; throws when something that is built in does not work.
Napi::Value SelfTest(const Napi::CallbackInfo& info) {
  check_matmul();
  if (comm::gloo_built()) comm::check_gloo();
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("matmul", true);
  result.Set("gloo", comm::gloo_built());
  return result;
}

}  // namespace

void InitSystem(Napi::Env env, Napi::Object exports) {
  define<SetNumThreads>(env, exports, "setNumThreads");
  define<NumThreads>(env, exports, "numThreads");
  define<BindThread>(env, exports, "bindThread");
  define<NativeInfo>(env, exports, "nativeInfo");
  define<SelfTest>(env, exports, "selfTest");
}

}  // namespace troupe
