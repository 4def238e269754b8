#include "core/programs/captured.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

// Each has all its activations for itself.
constexpr size_t kMostUnderWay = 8;

at::Tensor empty_as(const Geometry& geometry, c10::Device device) {
  return at::empty_strided(geometry.sizes, geometry.strides, at::TensorOptions(geometry.dtype).device(device));
}

bool has_gaps(const Geometry& geometry) {
  return !empty_as(geometry, c10::kMeta).unsafeGetTensorImpl()->is_non_overlapping_and_dense();
}

// Values are copied, not recorded.
class Copying {
 private:
  const at::AutoGradMode no_graph_{false};
  const at::AutoDispatchBelowADInplaceOrView below_;
};

void put_into(const Tensors& places, const Tensors& values) {
  const Copying copying;
  for (size_t i = 0; i < places.size(); i++) {
    if (places[i].defined()) places[i].copy_(values[i]);
  }
}

Tensors fresh_copies(const Tensors& tensors) {
  Tensors copies;
  for (const at::Tensor& tensor : tensors) {
    copies.push_back(tensor.defined() ? empty_as(Geometry::of(tensor), tensor.device()) : at::Tensor());
  }
  put_into(copies, tensors);
  return copies;
}

bool takes_communicator(const Instruction& instruction) {
  if (!instruction.op) return false;
  const auto& arguments = instruction.op->schema().arguments();
  return std::any_of(arguments.begin(), arguments.end(), [](const c10::Argument& argument) { return argument.name() == "communicator"; });
}

bool takes_late_list(const Instruction& instruction) {
  return std::any_of(instruction.operands.begin(), instruction.operands.end(),
                     [](const Operand& operand) { return operand.kind == Operand::Kind::late_list; });
}

}  // namespace

CapturedCall::CapturedCall(std::shared_ptr<const Program> program, bool keep) : program_(std::move(program)) {
  for (const ArgumentFacts& facts : program_->arguments) arguments_.push_back(empty_as(facts.geometry, program_->device));
  forward_ = capture_graph(program_->device, nullptr, [&] { results_ = program_->forward(arguments_, keep ? Purpose::results_and_backward : Purpose::results, played_); });
  if (!keep) played_ = {};
}

Tensors CapturedCall::forward(const Tensors& arguments) {
  put_into(arguments_, arguments);
  forward_->launch();
  return fresh_copies(results_);
}

Tensors CapturedCall::backward(const Tensors& gradients) {
  if (backward_ == nullptr) {
    for (const Slot slot : program_->gradient_slots) {
      gradients_.push_back(slot == kNoSlot ? at::Tensor() : empty_as(program_->geometries[slot], program_->device));
    }
    backward_ = capture_graph(program_->device, forward_.get(), [&] { made_ = program_->backward(gradients_, played_); });
    played_ = {};
  }
  put_into(gradients_, gradients);
  backward_->launch();
  return fresh_copies(made_);
}

std::string CapturedProgram::refusal(const Program& program) {
  if (!captures_graphs(program.device)) return "its device has no graphs";
  if (program.num_late > 0) return "it draws random numbers";
  for (size_t i = 0; i < program.arguments.size(); i++) {
    if (static_cast<size_t>(program.arguments[i].first_of_storage) != i) return "arguments share memory";
    if (has_gaps(program.arguments[i].geometry)) return "an argument has gaps";
  }
  for (const std::vector<Slot>* const given : {&program.results, &program.gradient_slots, &program.gradients}) {
    for (const Slot slot : *given) {
      if (slot != kNoSlot && has_gaps(program.geometries[slot])) return "a result or a gradient has gaps";
    }
  }
  for (const std::vector<Instruction>* const half : {&program.forwards, &program.backwards}) {
    for (const Instruction& instruction : *half) {
      if (takes_communicator(instruction)) return instruction.name() + " waits for other ranks";
      if (takes_late_list(instruction)) return instruction.name() + " takes lists of tensors";
    }
  }
  return "";
}

std::shared_ptr<CapturedCall> CapturedProgram::open(bool keep) {
  if (num_opened_++ == 0) return nullptr;
  auto& calls = keep ? kept_ : alone_;
  for (const std::shared_ptr<CapturedCall>& call : calls) {
    if (call.use_count() == 1) return call;
  }
  if (calls.size() == kMostUnderWay) return nullptr;
  return calls.emplace_back(std::make_shared<CapturedCall>(program_, keep));
}

}  // namespace troupe
