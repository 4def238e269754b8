// The fused optimizer steps: tensors to pointers.
#include "kernels/cpu/flat_step.h"
#include "kernels/cuda/call.h"
#include "kernels/register.h"

namespace troupe::cuda {
namespace {

template <class Coefficients>
void flat_step(const FlatStep& step, std::vector<Coefficients>& of_segments) {
  const Call call(step.param);
  StepOf of{};
  of.param = floats(step.param);
  for (size_t s = 0; s < step.states.size(); s++) of.states[s] = floats(step.states[s]);
  of.grad = array_of(step.grad);
  if (step.low_precision) of.low_precision = array_of(*step.low_precision);
  of.ends = step.segments.ends.data();
  of.segments = static_cast<int64_t>(step.segments.ends.size());
  if (step.scale) of.scale = step.scale->data_ptr<double>();
  launch_step(call.stream(), of, of_segments.data());
}

TROUPE_CUDA_KERNEL(flat_step, flat_step<AdamWCoefficients>);
TROUPE_CUDA_KERNEL(flat_step, flat_step<AdamCoefficients>);
TROUPE_CUDA_KERNEL(flat_step, flat_step<BMTrainAdamCoefficients>);
TROUPE_CUDA_KERNEL(flat_step, flat_step<SgdCoefficients>);
TROUPE_CUDA_KERNEL(flat_step, flat_step<LionCoefficients>);
TROUPE_CUDA_KERNEL(flat_step, flat_step<LambCoefficients>);
TROUPE_CUDA_KERNEL(flat_step, flat_step<AlongCoefficients>);
TROUPE_CUDA_KERNEL(flat_step, flat_step<BlendCoefficients>);
TROUPE_CUDA_KERNEL(flat_step, flat_step<SecondMomentCoefficients>);

}  // namespace
}  // namespace troupe::cuda
