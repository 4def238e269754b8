// Operators of the device: they give back at once what they will compute, and compute later.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>
#include <string>

#include "devices/sim/queue.h"
#include "devices/sim/stand_ins.h"

namespace troupe::sim {

// The kernel of every operator that the CPU has one for.
void run_late(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// Puts `run` into a queue, there to have as many threads as the caller has here.
uint64_t push_late(Queue& queue, const std::string& name, std::function<void()> run);

// The operator's own arguments, taken off the stack. Throws where they do not lie on one device.
torch::jit::Stack take_arguments(const c10::OperatorHandle& op, torch::jit::Stack* stack);
c10::DeviceIndex device_of(const c10::OperatorHandle& op, const torch::jit::Stack& arguments);

// The results that the operator will give: its arguments, views of them, and new poisoned tensors, which are listed in `fresh`.
struct Announced {
  torch::jit::Stack results;
  torch::jit::Stack fresh;  // the results again, undefined where nothing is to be copied into them
  bool computes = false;    // whether there is anything to do late
};
Announced announce(const c10::OperatorHandle& op, const torch::jit::Stack& arguments);

// Copies what was computed into what was announced; throws where it is not of that shape.
void fill(const torch::jit::Stack& announced, const torch::jit::Stack& computed);

// Arguments as the queue may have them: the device's memory by its stand-ins, the host's numbers by value.
torch::jit::Stack late_arguments(StandIns& stand_ins, const torch::jit::Stack& arguments);

}  // namespace troupe::sim
