#include "binding/environment.h"

namespace troupe {

const at::Tensor& Environment::tensor(const Napi::CallbackInfo& info, size_t index, const char* op) {
  return of(info.Env()).handles.get(handle(info, index), op);
}

const at::Tensor& Environment::writable_tensor(const Napi::CallbackInfo& info, size_t index, const char* op) {
  return of(info.Env()).handles.get_writable(handle(info, index), op);
}

Napi::Value Environment::give(const Napi::CallbackInfo& info, at::Tensor tensor, Guard guard) {
  return Napi::Number::New(info.Env(), of(info.Env()).handles.put(std::move(tensor), std::move(guard)));
}

}  // namespace troupe
