// The allocator's ledger.
#include "binding/environment.h"
#include "binding/errors.h"
#include "binding/init.h"
#include "core/allocator.h"
#include "core/exported_tensor.h"
#include "core/kept_mappings.h"

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

Napi::Value ReleaseCachedMemory(const Napi::CallbackInfo& info) {
  release_cached_memory();
  release_kept_mappings();
  return info.Env().Undefined();
}

}  // namespace

void InitMemory(Napi::Env env, Napi::Object exports) {
  define<MemoryInUse>(env, exports, "memory");
  define<AllocationTag>(env, exports, "allocationTag");
  define<SetAllocationTag>(env, exports, "setAllocationTag");
  define<ResetPeakMemory>(env, exports, "resetPeakMemory");
  define<ReleaseCachedMemory>(env, exports, "releaseCachedMemory");
}

}  // namespace troupe
