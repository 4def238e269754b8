// The allocator's ledger.
#include "binding/environment.h"
#include "binding/errors.h"
#include "binding/init.h"
#include "core/device/device.h"
#include "core/error.h"
#include "core/memory/allocator.h"
#include "core/tensors/exported_tensor.h"
#include "core/memory/kept_mappings.h"
#include "core/dispatch/meter.h"
#include "kernels/meta/autocast.h"

namespace troupe {
namespace {

Napi::Object use_object(Napi::Env env, const MemoryUse& use) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("liveBytes", static_cast<double>(use.live_bytes));
  object.Set("peakBytes", static_cast<double>(use.peak_bytes));
  return object;
}

// memory(): { liveBytes, peakBytes, residentBytes, tags: { [tag]: { liveBytes, peakBytes } } }
Napi::Value MemoryInUse(const Napi::CallbackInfo& info) {
  settle_exports(true);  // what other processes have given back counts no more
  const MemoryReport report = memory_report();
  Napi::Object result = use_object(info.Env(), report.total);
  result.Set("residentBytes", static_cast<double>(report.resident_bytes));
  Napi::Object tags = Napi::Object::New(info.Env());
  for (const MemoryUse& use : report.by_tag) tags.Set(use.tag, use_object(info.Env(), use));
  result.Set("tags", tags);
  return result;
}

// allocationTag(name): its number.
Napi::Value AllocationTag(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), allocation_tag(info[0].As<Napi::String>()));
}

// setAllocationTag(number): the number before, in this thread.
Napi::Value SetAllocationTag(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), set_allocation_tag(info[0].As<Napi::Number>().Int32Value()));
}

Napi::Value ResetPeakMemory(const Napi::CallbackInfo& info) {
  reset_peak_memory();
  return info.Env().Undefined();
}

// cudaMemory(index): { freeBytes, totalBytes, heldBytes, liveBytes } of a GPU.
Napi::Value CudaMemory(const Napi::CallbackInfo& info) {
  const auto memory = device_memory("cuda", info[0].As<Napi::Number>().Int64Value());
  if (!memory) {
    throw CodedError("DEVICE_UNAVAILABLE", "[cudaMemory] expected an addon with CUDA, got one without (npx troupe doctor tells why)");
  }
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("freeBytes", static_cast<double>(memory->free_bytes));
  result.Set("totalBytes", static_cast<double>(memory->total_bytes));
  result.Set("heldBytes", static_cast<double>(memory->held_bytes));
  result.Set("liveBytes", static_cast<double>(memory->live_bytes));
  return result;
}

Napi::Value ReleaseCachedMemory(const Napi::CallbackInfo& info) {
  release_cached_memory();
  release_cached_device_memory();
  release_kept_mappings();
  return info.Env().Undefined();
}

// startMeter(ofGpu)
Napi::Value StartMeter(const Napi::CallbackInfo& info) {
  install_metered_casts();
  start_meter(info[0].ToBoolean().Value());
  return info.Env().Undefined();
}

Napi::Value StopMeter(const Napi::CallbackInfo& info) {
  stop_meter();
  return info.Env().Undefined();
}

Napi::Value ResetMeterPeak(const Napi::CallbackInfo& info) {
  reset_meter_peak();
  return info.Env().Undefined();
}

// readMeter(): { liveBytes, peakBytes, madeBytes, flops, narrowFlops, ringBytes, numRings, unruled }
Napi::Value ReadMeter(const Napi::CallbackInfo& info) {
  const Metered metered = read_meter();
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("liveBytes", static_cast<double>(metered.live_bytes));
  result.Set("peakBytes", static_cast<double>(metered.peak_bytes));
  Napi::Array made = Napi::Array::New(info.Env());
  for (const int64_t bytes : metered.made_bytes) made.Set(made.Length(), static_cast<double>(bytes));
  result.Set("madeBytes", made);
  result.Set("flops", metered.flops);
  result.Set("narrowFlops", metered.narrow_flops);
  result.Set("ringBytes", static_cast<double>(metered.ring_bytes));
  result.Set("numRings", static_cast<double>(metered.num_rings));
  Napi::Array unruled = Napi::Array::New(info.Env());
  for (const std::string& op : metered.unruled) unruled.Set(unruled.Length(), op);
  result.Set("unruled", unruled);
  return result;
}

}  // namespace

void InitMemory(Napi::Env env, Napi::Object exports) {
  define<MemoryInUse>(env, exports, "memory");
  define<AllocationTag>(env, exports, "allocationTag");
  define<SetAllocationTag>(env, exports, "setAllocationTag");
  define<ResetPeakMemory>(env, exports, "resetPeakMemory");
  define<CudaMemory>(env, exports, "cudaMemory");
  define<ReleaseCachedMemory>(env, exports, "releaseCachedMemory");
  define<StartMeter>(env, exports, "startMeter");
  define<StopMeter>(env, exports, "stopMeter");
  define<ReadMeter>(env, exports, "readMeter");
  define<ResetMeterPeak>(env, exports, "resetMeterPeak");
}

}  // namespace troupe
