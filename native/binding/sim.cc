// The pretend device, for tests: its schedule, what it counts, its streams as such, and a touch that it must notice.
#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <deque>

#include <ATen/core/grad_mode.h>

#include "binding/arguments.h"
#include "binding/environment.h"
#include "binding/errors.h"
#include "binding/init.h"
#include "devices/sim/sim.h"

namespace troupe {
namespace {

// simSeed(seed): of every schedule from now on.
Napi::Value SimSeed(const Napi::CallbackInfo& info) {
  sim::set_seed(static_cast<uint64_t>(whole_number(info, 0)));
  return info.Env().Undefined();
}

// simStatistics(): { lateOperators, readBacks, hostWaits }
Napi::Value SimStatistics(const Napi::CallbackInfo& info) {
  const sim::Statistics statistics = sim::statistics();
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("lateOperators", static_cast<double>(statistics.late_operators));
  result.Set("readBacks", static_cast<double>(statistics.read_backs));
  result.Set("hostWaits", static_cast<double>(statistics.host_waits));
  return result;
}

c10::impl::VirtualGuardImpl guard() { return c10::impl::VirtualGuardImpl(c10::DeviceType::PrivateUse1); }

c10::Stream present_stream() { return guard().getStream(guard().getDevice()); }

// simStream(number): makes a stream of this thread's present device current, 0 the default one; returns the number before.
Napi::Value SimStream(const Napi::CallbackInfo& info) {
  const c10::Stream stream(c10::Stream::UNSAFE, guard().getDevice(), whole_number(info, 0));
  return Napi::Number::New(info.Env(), static_cast<double>(guard().exchangeStream(stream).id()));
}

// The events of this thread; a test has few.
std::deque<c10::Event>& events() {
  thread_local std::deque<c10::Event> all;
  return all;
}

// simRecord(): the number of an event behind all that the present stream was given.
Napi::Value SimRecord(const Napi::CallbackInfo& info) {
  events().emplace_back(c10::DeviceType::PrivateUse1);
  events().back().record(present_stream());
  return Napi::Number::New(info.Env(), static_cast<double>(events().size() - 1));
}

// simBlock(event): makes the present stream wait for it.
Napi::Value SimBlock(const Napi::CallbackInfo& info) {
  events().at(static_cast<size_t>(whole_number(info, 0))).block(present_stream());
  return info.Env().Undefined();
}

// simUse(handle): the present stream uses the tensor's memory.
Napi::Value SimUse(const Napi::CallbackInfo& info) {
  guard().recordDataPtrOnStream(Environment::tensor(info, 0, "simUse").storage().data_ptr(), present_stream());
  return info.Env().Undefined();
}

// simSynchronize(): waits for the present stream.
Napi::Value SimSynchronize(const Napi::CallbackInfo& info) {
  present_stream().synchronize();
  return info.Env().Undefined();
}

// copyLate(handle, from): the target's elements, copied without waiting.
Napi::Value CopyLate(const Napi::CallbackInfo& info) {
  const at::NoGradGuard no_grad;
  Environment::writable_tensor(info, 0, "copyLate").copy_(Environment::tensor(info, 1, "copyLate"), /*non_blocking=*/true);
  return info.Env().Undefined();
}

// touch(handle): the tensor's first byte, read by the CPU wherever it lies.
Napi::Value Touch(const Napi::CallbackInfo& info) {
  const at::Tensor& tensor = Environment::tensor(info, 0, "touch");
  return Napi::Number::New(info.Env(), *static_cast<const volatile uint8_t*>(tensor.data_ptr()));
}

}  // namespace

void InitSim(Napi::Env env, Napi::Object exports) {
  define<SimSeed>(env, exports, "simSeed");
  define<SimStatistics>(env, exports, "simStatistics");
  define<SimStream>(env, exports, "simStream");
  define<SimRecord>(env, exports, "simRecord");
  define<SimBlock>(env, exports, "simBlock");
  define<SimUse>(env, exports, "simUse");
  define<SimSynchronize>(env, exports, "simSynchronize");
  define<CopyLate>(env, exports, "copyLate");
  define<Touch>(env, exports, "touch");
}

}  // namespace troupe
