// Gradients. Lists of tensors come through the frame, written as for operators.
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "binding/environment.h"
#include "binding/errors.h"
#include "binding/init.h"
#include "core/autograd/autocast.h"
#include "core/autograd/autograd.h"
#include "core/dispatch/describe.h"
#include "core/error.h"
#include "core/invariance.h"

namespace troupe {
namespace {

// The three lists in the frame: outputs, their gradients (with gaps), inputs.
struct Operands {
  std::vector<at::Tensor> outputs;
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> inputs;
};

class ListReader {
 public:
  ListReader(const Environment& environment, const char* op) : environment_(environment), op_(op) {}

  Operands read() {
    Operands operands;
    operands.outputs = next([this] { return tensor(); });
    operands.gradients = next([this] {
      const bool present = number() != 0;
      if (present) return tensor();
      number();
      return at::Tensor();
    });
    operands.inputs = next([this] { return environment_.handles.identity(static_cast<Handle>(number()), op_); });
    return operands;
  }

 private:
  template <typename Read>
  std::vector<at::Tensor> next(Read read) {
    std::vector<at::Tensor> tensors(static_cast<size_t>(number()));
    for (at::Tensor& tensor : tensors) tensor = read();
    return tensors;
  }
  double number() { return environment_.frame.data[cursor_++]; }
  at::Tensor tensor() { return environment_.handles.get(static_cast<Handle>(number()), op_); }

  const Environment& environment_;
  const char* op_;
  size_t cursor_ = 0;
};

// libtorch's engine sums a gradient that is larger than its tensor, and spreads one that is smaller.
void require_shape(const char* op, const at::Tensor& gradient, const at::Tensor& tensor) {
  if (!gradient.defined() || gradient.sizes() == tensor.sizes()) return;
  std::ostringstream sentence;
  sentence << "[" << op << "] expected a gradient of its tensor's shape, " << tensor.sizes() << ", got " << gradient.sizes();
  throw CodedError("TENSOR_ARGUMENT", sentence.str());
}

// libtorch's sentences for the two usual mistakes name Python's functions; these name what to write here.
std::string engine_sentence(const std::exception& error) {
  const std::string message = plain_message(error);
  static const std::regex changed(R"(modified by an inplace operation: \[\w+ (\[[^\]]*\])\](?:, which is output \d+ of (\w+?)(?:Backward\d*)?,)? is)");
  if (std::smatch found; std::regex_search(message, found, changed)) {
    const std::string origin = found[2].matched ? ", the output of " + found[2].str() + "," : "";
    return "expected what backward needs to stay as it was, got a tensor of shape " + found[1].str() + origin +
           " changed in place (write mul(x) for mul_(x), or change a clone())";
  }
  if (message.find("does not require grad and does not have a grad_fn") != std::string::npos)
    return "expected outputs with a graph that leads to what requires grad, got a tensor without one (in a loop of your own, "
           "rank.backward(loss) walks back what rank.forward computed)";
  return message;
}

// Runs the engine and has what it refuses say what the outputs were.
template <typename Run>
auto with_operands(const char* op, const Operands& operands, Run run) {
  // The engine refuses other counts.
  for (size_t i = 0; i < std::min(operands.gradients.size(), operands.outputs.size()); i++) require_shape(op, operands.gradients[i], operands.outputs[i]);
  try {
    return run();
  } catch (const CodedError&) {
    throw;
  } catch (const std::exception& error) {
    const std::string got = describe_argument("outputs", operands.outputs);
    throw CodedError("TENSOR_OP_FAILED", std::string("[") + op + "] " + engine_sentence(error) + ": got " + got,
                     {{"op", op}, {"operands", got}});
  }
}

// backward(retainGraph)
Napi::Value RunBackward(const Napi::CallbackInfo& info) {
  const Operands it = ListReader(Environment::of(info.Env()), "backward").read();
  with_operands("backward", it, [&] { run_backward(it.outputs, it.gradients, it.inputs, info[0].ToBoolean()); });
  return info.Env().Undefined();
}

// grad(retainGraph, allowUnused, firstByRows): the frame then holds one handle per input, 0 for none.
Napi::Value Grad(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::of(info.Env());
  const Operands it = ListReader(environment, "grad").read();
  auto results = with_operands("grad", it, [&] {
    return run_grad(it.outputs, it.inputs, it.gradients,
                    {info[0].ToBoolean(), info[1].ToBoolean(), info[2].As<Napi::Number>().Uint32Value()});
  });
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

// setAutocast(dtype): the dtype's number, negative for none; what it was before, in this thread.
Napi::Value SetAutocast(const Napi::CallbackInfo& info) {
  const int32_t code = info[0].As<Napi::Number>().Int32Value();
  const auto wanted = code < 0 ? c10::nullopt : c10::optional<at::ScalarType>(static_cast<at::ScalarType>(code));
  const auto before = set_autocast(wanted);
  return Napi::Number::New(info.Env(), before ? static_cast<double>(*before) : -1);
}

// setInvariant(flag): what it was before, in this thread.
Napi::Value SetInvariant(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), set_invariant(info[0].ToBoolean()));
}

Napi::Value RequiresGrad(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), Environment::tensor(info, 0, "requiresGrad").requires_grad());
}

// requiresGrad_(handle, flag)
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
  const at::Tensor gradient = Environment::handle(info, 1) == 0 ? at::Tensor() : Environment::tensor(info, 1, "grad");
  require_shape("grad", gradient, tensor);
  tensor.mutable_grad() = gradient;
  return info.Env().Undefined();
}

}  // namespace

void InitAutograd(Napi::Env env, Napi::Object exports) {
  define<RunBackward>(env, exports, "backward");
  define<Grad>(env, exports, "grad");
  define<SetGradEnabled>(env, exports, "setGradEnabled");
  define<GradEnabled>(env, exports, "gradEnabled");
  define<SetAutocast>(env, exports, "setAutocast");
  define<SetInvariant>(env, exports, "setInvariant");
  define<RequiresGrad>(env, exports, "requiresGrad");
  define<SetRequiresGrad>(env, exports, "requiresGrad_");
  define<GradOf>(env, exports, "gradOf");
  define<SetGrad>(env, exports, "setGrad");
}

}  // namespace troupe
