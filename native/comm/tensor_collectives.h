// Collectives that take a tensor and return a new one, along any dim where that matters; each waits. What is wrong with a
// tensor is said in the name of `op`, the operator that asks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "comm/communicator.h"

namespace troupe::comm {

// `dim` counted from the front. Throws where x has no such dim.
int64_t wrapped(const at::Tensor& x, int64_t dim, const char* op);

// The reduction of all ranks' x, on each of them.
at::Tensor all_reduced(Communicator& member, const at::Tensor& x, Reduction reduction = Reduction::sum);
// All ranks' x, one behind the other: [...] -> [size, ...].
at::Tensor stacked(Communicator& member, const at::Tensor& x);
// All ranks' x, joined along dim.
at::Tensor joined(Communicator& member, const at::Tensor& x, int64_t dim);
// This rank's slice of x along dim; asks nobody. Throws where the ranks do not divide it.
at::Tensor own_slice(const Communicator& member, const at::Tensor& x, int64_t dim, const char* op);
// This rank's slice of the reduction of all ranks' x. Throws where the ranks do not divide it.
at::Tensor reduced_slice(Communicator& member, const at::Tensor& x, int64_t dim, Reduction reduction, const char* op);
// The root's x.
at::Tensor broadcasted(Communicator& member, const at::Tensor& x, int root);
// The sum of all ranks' x at the root, zeros elsewhere.
at::Tensor summed_at(Communicator& member, const at::Tensor& x, int root);
// Rows of dim 0 sent to the ranks and received from them, so many to and from each; evenly where that is left empty. Throws where x has no dims.
at::Tensor exchanged(Communicator& member, const at::Tensor& x, const std::vector<int64_t>& output_splits,
                     const std::vector<int64_t>& input_splits, const char* op);

}  // namespace troupe::comm
