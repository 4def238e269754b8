// Tensors between threads.
#include "binding/arguments.h"
#include "binding/environment.h"
#include "binding/errors.h"
#include "binding/init.h"
#include "core/tensors/exported_tensor.h"
#include "core/tensors/refs.h"

namespace troupe {
namespace {

// makeRef(handle, kind 0 move | 1 share, owner): the ref's id; the frame then holds its generation.
Napi::Value MakeRef(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::of(info.Env());
  const auto kind = static_cast<RefKind>(info[1].As<Napi::Number>().Uint32Value());
  const RefId ref = make_ref(environment.handles, Environment::handle(info, 0), kind, info[2].As<Napi::String>());
  environment.frame.data[0] = ref.generation;
  return Napi::Number::New(info.Env(), ref.id);
}

// attachRef(id, generation): a handle.
Napi::Value AttachRef(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(),
                           attach_ref(Environment::of(info.Env()).handles, ref_argument(info)));
}

Napi::Value ReleaseRef(const Napi::CallbackInfo& info) {
  const RefId ref = ref_argument(info);
  return Napi::Boolean::New(info.Env(), release_ref(ref) || release_exported(ref));
}

Napi::Value ReleaseRefsOf(const Napi::CallbackInfo& info) {
  const std::string owner = info[0].As<Napi::String>();
  return Napi::Number::New(info.Env(), static_cast<double>(release_refs_of(owner) + release_exported_to(owner)));
}

Napi::Value LiveRefs(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(live_refs()));
}

}  // namespace

void InitRefs(Napi::Env env, Napi::Object exports) {
  define<MakeRef>(env, exports, "makeRef");
  define<AttachRef>(env, exports, "attachRef");
  define<ReleaseRef>(env, exports, "releaseRef");
  define<ReleaseRefsOf>(env, exports, "releaseRefsOf");
  define<LiveRefs>(env, exports, "liveRefs");
}

}  // namespace troupe
