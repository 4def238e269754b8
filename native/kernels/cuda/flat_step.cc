// The fused optimizer steps: tensors to pointers.
#include "kernels/cuda/call.h"
#include "kernels/cuda/kernels.h"

namespace troupe::cuda {

void with_step(const StepTensors& tensors, const std::function<void(Stream, const StepOf&)>& launch) {
  const Call call(*tensors.param);
  StepOf step{};
  step.param = floats(*tensors.param);
  for (size_t s = 0; s < tensors.states.size(); s++) {
    if (tensors.states[s] != nullptr) step.states[s] = floats(*tensors.states[s]);
  }
  step.grad = array_of(*tensors.grad);
  if (tensors.low_precision) step.low_precision = array_of(*tensors.low_precision);
  step.ends = tensors.segment_ends.data();
  step.segments = static_cast<int64_t>(tensors.segment_ends.size());
  if (tensors.scale) step.scale = tensors.scale->data_ptr<double>();
  launch(call.stream(), step);
}

}  // namespace troupe::cuda
