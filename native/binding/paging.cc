// Memory that goes back to the system for a while and is filled again in place.
#include "binding/environment.h"
#include "binding/errors.h"
#include "binding/init.h"
#include "core/tensors/paged.h"

namespace troupe {
namespace {

// emptyPaged(dtype, numel): a 1-D tensor over pages of its own.
Napi::Value EmptyPaged(const Napi::CallbackInfo& info) {
  const auto dtype = static_cast<at::ScalarType>(info[0].As<Napi::Number>().Int32Value());
  const int64_t bytes = info[1].As<Napi::Number>().Int64Value() * static_cast<int64_t>(c10::elementSize(dtype));
  return Environment::give(info, paged_memory(bytes).view(dtype));
}

// vacate(handle): all of the memory that the tensor is a part of.
Napi::Value Vacate(const Napi::CallbackInfo& info) {
  vacate_pages(Environment::of(info.Env()).handles.identity(Environment::handle(info, 0), "vacate"));
  return info.Env().Undefined();
}

// occupy(handle)
Napi::Value Occupy(const Napi::CallbackInfo& info) {
  occupy_pages(Environment::of(info.Env()).handles.identity(Environment::handle(info, 0), "occupy"));
  return info.Env().Undefined();
}

// markOffloaded(count, offloaded): the tensors in the frame.
Napi::Value MarkOffloaded(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::of(info.Env());
  std::vector<Handle> tensors(info[0].As<Napi::Number>().Uint32Value());
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i] = static_cast<Handle>(environment.frame.data[i]);
  mark_offloaded(environment.handles, tensors, info[1].ToBoolean());
  return info.Env().Undefined();
}

// sharesMemory(handle, handle): whether two tensors are over one memory.
Napi::Value SharesMemory(const Napi::CallbackInfo& info) {
  const HandleTable& handles = Environment::of(info.Env()).handles;
  const at::Tensor& one = handles.identity(Environment::handle(info, 0), "sharesMemory");
  return Napi::Boolean::New(info.Env(), one.is_alias_of(handles.identity(Environment::handle(info, 1), "sharesMemory")));
}

}  // namespace

void InitPaging(Napi::Env env, Napi::Object exports) {
  define<EmptyPaged>(env, exports, "emptyPaged");
  define<Vacate>(env, exports, "vacate");
  define<Occupy>(env, exports, "occupy");
  define<MarkOffloaded>(env, exports, "markOffloaded");
  define<SharesMemory>(env, exports, "sharesMemory");
}

}  // namespace troupe
