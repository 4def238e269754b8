#include "binding/environment.h"

#include <algorithm>

#include "comm/communicator.h"

namespace troupe {

Environment::~Environment() {
  for (const int64_t number : communicators) comm::close_communicator(number);
}

void Environment::close_communicator(int64_t number) {
  comm::close_communicator(number);
  communicators.erase(std::remove(communicators.begin(), communicators.end(), number), communicators.end());
}

const at::Tensor& Environment::tensor(const Napi::CallbackInfo& info, size_t index, const char* op) {
  return of(info.Env()).handles.get(handle(info, index), op);
}

const at::Tensor& Environment::writable_tensor(const Napi::CallbackInfo& info, size_t index, const char* op) {
  return of(info.Env()).handles.get_writable(handle(info, index), op);
}

Napi::Value Environment::give(const Napi::CallbackInfo& info, at::Tensor tensor, Guard guard) {
  return give(info.Env(), std::move(tensor), std::move(guard));
}

Napi::Value Environment::give(Napi::Env env, at::Tensor tensor, Guard guard) {
  return Napi::Number::New(env, of(env).handles.put(std::move(tensor), std::move(guard)));
}

}  // namespace troupe
