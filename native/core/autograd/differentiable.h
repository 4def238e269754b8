// How Troupe's kernels take part in autograd. Kernels include this instead of libtorch's own template, which costs every
// file that includes it seven seconds of compilation.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace troupe {

using Tensors = std::vector<at::Tensor>;

// The gradients of an operator's inputs, one for each and undefined where there is none, from those of its outputs and
// from what was saved. Of the outputs' gradients at least one is defined.
using Backward = std::function<Tensors(const Tensors& gradients, const Tensors& saved)>;

// Whether gradients are being recorded and one of `inputs` asks for its own. Undefined inputs do not count.
bool wants_gradient(const Tensors& inputs);

// Runs `compute` below autograd: what it calls of libtorch is not recorded.
template <class Compute>
auto without_recording(const Compute& compute) {
  at::AutoDispatchBelowADInplaceOrView below;
  return compute();
}

// Makes `outputs`, computed without recording, a differentiable function of `inputs`; nothing happens where no gradient is
// wanted. `saved` may hold inputs and outputs: backward throws when one was changed in place since. `backward` runs once or
// more, on any thread, with recording off: gradients of gradients are refused with an error that names `op`, a literal.
void record(const char* op, const Tensors& inputs, const Tensors& outputs, const Tensors& saved, Backward backward);

}  // namespace troupe
