// Troupe's own operators that take part in autograd: what the CPU has of each, forward and backward in one, runs late in the
// queue, and keeps its graph there. On this side stands one node, which knows the shapes.
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/DeviceGuard.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/library.h>

#include <memory>
#include <set>
#include <string>

#include "core/autograd/differentiable.h"
#include "core/torch_version.h"
#include "devices/sim/device.h"
#include "devices/sim/kernels.h"
#include "devices/sim/late.h"

#if TROUPE_TORCH_AT_LEAST(2, 9)

namespace troupe::sim {
namespace {

// An operator's pass through the queue: written forward, read backward.
struct LateGraph {
  Tensors inputs;   // stand-ins over the device's memory, leaves that ask for gradients where those they stand for do
  Tensors outputs;  // the CPU's own
};

Tensors tensors_of(const torch::jit::Stack& values) {
  Tensors tensors;
  for (const c10::IValue& value : values) {
    each_tensor(value, [&](const at::Tensor& tensor) { tensors.push_back(tensor); });
  }
  return tensors;
}

Tensors stand_ins_of(StandIns& stand_ins, const Tensors& tensors) {
  Tensors result;
  for (const at::Tensor& tensor : tensors) result.push_back(tensor.defined() ? stand_ins.of(tensor) : tensor);
  return result;
}

void compute_forward(const c10::OperatorHandle& op, LateGraph& graph, torch::jit::Stack& arguments, const torch::jit::Stack& fresh) {
  {
    const at::AutoGradMode recording(true);
    op.callBoxed(arguments);
  }
  const at::AutoDispatchBelowADInplaceOrView below;
  graph.outputs = tensors_of(arguments);
  fill(fresh, arguments);
}

void compute_backward(LateGraph& graph, const Tensors& gradients, const Tensors& to) {
  Tensors outputs, given, inputs, targets;
  for (size_t i = 0; i < graph.outputs.size(); i++) {
    if (!gradients[i].defined() || !graph.outputs[i].requires_grad()) continue;
    outputs.push_back(graph.outputs[i]);
    given.push_back(gradients[i]);
  }
  for (size_t i = 0; i < to.size(); i++) {
    if (!to[i].defined()) continue;
    inputs.push_back(graph.inputs[i]);
    targets.push_back(to[i]);
  }
  const Tensors computed = torch::autograd::grad(outputs, inputs, given, /*retain_graph=*/true, /*create_graph=*/false,
                                                 /*allow_unused=*/true);
  const at::AutoDispatchBelowADInplaceOrView below;
  for (size_t i = 0; i < targets.size(); i++) {
    if (computed[i].defined()) {
      targets[i].copy_(computed[i]);
    } else {
      targets[i].zero_();
    }
  }
}

Tensors push_backward(const char* name, const std::shared_ptr<LateGraph>& graph, const std::vector<bool>& wanted,
                      const std::vector<at::Tensor>& shapes, const Tensors& gradients) {
  StandIns stand_ins(StandIns::Over::device);
  Tensors results, late_gradients = stand_ins_of(stand_ins, gradients);
  Queue* queue = nullptr;
  for (const at::Tensor& gradient : gradients) {
    if (gradient.defined()) queue = &current_queue(gradient.device().index());
  }
  const c10::DeviceGuard guard(c10::Device(c10::DeviceType::PrivateUse1, queue->device));
  for (size_t i = 0; i < wanted.size(); i++) {
    results.push_back(wanted[i] ? at::empty_like(shapes[i], at::TensorOptions().device(c10::Device(c10::DeviceType::PrivateUse1, queue->device))) : at::Tensor());
  }
  Tensors to = stand_ins_of(stand_ins, results);
  push_late(*queue, std::string(name) + " backward", [graph, late_gradients = std::move(late_gradients), to = std::move(to)] {
    compute_backward(*graph, late_gradients, to);
  });
  return results;
}

// Those whose backward needs nothing of what forward read: their inputs may be gone by then.
bool saves_inputs(const std::string& name) {
  static const std::set<std::string> without{"troupe::dropout", "troupe::linear_cross_entropy"};
  return without.count(name) == 0;
}

// Operators' names outlive the process's last graph.
const char* kept_name(const c10::OperatorHandle& op) { return op.operator_name().name.c_str() + sizeof("troupe::") - 1; }

void run_late_with_graph(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const torch::jit::Stack arguments = take_arguments(op, stack);
  const Tensors inputs = tensors_of(arguments);
  if (!wants_gradient(inputs)) {
    const at::AutoDispatchBelowADInplaceOrView below;
    for (const c10::IValue& argument : arguments) stack->push_back(argument);
    return op.callBoxed(stack);
  }
  const c10::DeviceIndex device = device_of(op, arguments);
  const c10::DeviceGuard guard(c10::Device(c10::DeviceType::PrivateUse1, device));
  const Announced announced = announce(op, arguments);
  const auto graph = std::make_shared<LateGraph>();
  StandIns stand_ins(StandIns::Over::device);
  torch::jit::Stack late;
  std::vector<bool> wanted;
  Tensors shapes;
  // A leaf for each place, also where one tensor stands in several.
  const auto leaf = [&](const at::Tensor& input, const at::Tensor& stand_in) {
    wanted.push_back(wants_gradient({input}));  // a program answers as it did when it was recorded
    shapes.push_back(wanted.back() ? at::empty_like(input, at::TensorOptions().device(c10::kMeta)) : at::Tensor());
    graph->inputs.push_back(stand_in.detach());
    if (wanted.back()) graph->inputs.back().requires_grad_(true);
    return graph->inputs.back();
  };
  for (const c10::IValue& argument : late_arguments(stand_ins, arguments)) {
    late.push_back(changed(argument, [&](const at::Tensor& stand_in) { return leaf(inputs[graph->inputs.size()], stand_in); }));
  }
  torch::jit::Stack fresh = stand_ins.of(announced.fresh);
  push_late(current_queue(device), kept_name(op), [op, graph, late = std::move(late), fresh = std::move(fresh)] {
    torch::jit::Stack values = late;
    compute_forward(op, *graph, values, fresh);
  });
  const Tensors outputs = tensors_of(announced.results);
  Tensors saved = saves_inputs(op.operator_name().name) ? inputs : Tensors{};
  record(kept_name(op), inputs, outputs, saved,
         [name = kept_name(op), graph, wanted, shapes](const Tensors& gradients, const Tensors&) -> Tensors {
           return push_backward(name, graph, wanted, shapes, gradients);
         });
  for (const c10::IValue& result : announced.results) stack->push_back(result);
}

}  // namespace

void register_graphs(torch::Library& troupe) {
  for (const char* op : {"attention", "masked_attention", "dropped_attention", "bias_gelu", "cross_entropy", "dropout", "layer_norm", "add_layer_norm",
                         "linear_cross_entropy", "rms_norm", "add_rms_norm", "rotary", "swiglu", "attach_gradients"}) {
    troupe.impl(op, torch::CppFunction::makeFromBoxedFunction<&run_late_with_graph>());
  }
}

}  // namespace troupe::sim

#endif
