// Gradients. Lists of tensors come through the frame: each is its length and its handles, 0 standing for none.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "binding/environment.h"
#include "binding/errors.h"
#include "binding/init.h"
#include "core/autograd.h"

namespace troupe {
namespace {

class FrameLists {
 public:
  FrameLists(Environment& environment, const char* op) : environment_(environment), op_(op) {}

  std::vector<at::Tensor> next() {
    std::vector<at::Tensor> tensors(static_cast<size_t>(environment_.frame.data[cursor_++]));
    for (at::Tensor& tensor : tensors) {
      const auto handle = static_cast<Handle>(environment_.frame.data[cursor_++]);
      if (handle != 0) tensor = environment_.handles.get(handle, op_);
    }
    return tensors;
  }

 private:
  Environment& environment_;
  const char* op_;
  size_t cursor_ = 0;
};

// backward(retainGraph): the frame holds outputs, gradients, inputs.
Napi::Value Backward(const Napi::CallbackInfo& info) {
  FrameLists lists(Environment::of(info.Env()), "backward");
  const auto outputs = lists.next();
  const auto gradients = lists.next();
  const auto inputs = lists.next();
  run_backward(outputs, gradients, inputs, info[0].ToBoolean());
  return info.Env().Undefined();
}

// computeGrad(retainGraph, allowUnused): the frame holds outputs, inputs, gradients, and afterwards one handle per input.
Napi::Value ComputeGrad(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::of(info.Env());
  FrameLists lists(environment, "grad");
  const auto outputs = lists.next();
  const auto inputs = lists.next();
  const auto gradients = lists.next();
  auto results = run_grad(outputs, inputs, gradients, info[0].ToBoolean(), info[1].ToBoolean());
  for (size_t i = 0; i < results.size(); ++i) {
    environment.frame.data[i] = results[i].defined() ? environment.handles.put(std::move(results[i])) : 0;
  }
  return info.Env().Undefined();
}

// setGradEnabled(flag): what it was before, in this thread.
Napi::Value SetGradEnabled(const Napi::CallbackInfo& info) {
  const bool before = at::GradMode::is_enabled();
  at::GradMode::set_enabled(info[0].ToBoolean());
  return Napi::Boolean::New(info.Env(), before);
}

Napi::Value GradEnabled(const Napi::CallbackInfo& info) { return Napi::Boolean::New(info.Env(), at::GradMode::is_enabled()); }

Napi::Value RequiresGrad(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), Environment::tensor(info, 0, "requiresGrad").requires_grad());
}

// setRequiresGrad(handle, flag)
Napi::Value SetRequiresGrad(const Napi::CallbackInfo& info) {
  Environment::tensor(info, 0, "requiresGrad_").requires_grad_(info[1].ToBoolean());
  return info.Env().Undefined();
}

// gradOf(handle): a new handle, 0 when there is no gradient.
Napi::Value GradOf(const Napi::CallbackInfo& info) {
  const at::Tensor& gradient = Environment::tensor(info, 0, "grad").grad();
  return gradient.defined() ? Environment::give(info, gradient) : Napi::Number::New(info.Env(), 0);
}

// setGrad(handle, gradient): 0 takes it away.
Napi::Value SetGrad(const Napi::CallbackInfo& info) {
  const at::Tensor& tensor = Environment::tensor(info, 0, "grad");
  const bool none = Environment::handle(info, 1) == 0;
  tensor.mutable_grad() = none ? at::Tensor() : Environment::tensor(info, 1, "grad");
  return info.Env().Undefined();
}

}  // namespace

void InitAutograd(Napi::Env env, Napi::Object exports) {
  define<Backward>(env, exports, "backward");
  define<ComputeGrad>(env, exports, "computeGrad");
  define<SetGradEnabled>(env, exports, "setGradEnabled");
  define<GradEnabled>(env, exports, "gradEnabled");
  define<RequiresGrad>(env, exports, "requiresGrad");
  define<SetRequiresGrad>(env, exports, "setRequiresGrad");
  define<GradOf>(env, exports, "gradOf");
  define<SetGrad>(env, exports, "setGrad");
}

}  // namespace troupe
