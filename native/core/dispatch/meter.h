// Measures what computing on tensors without memory would cost if they had memory: bytes, FLOPs of products, bytes sent to ranks.
// A thread that has a meter charges every meta tensor it makes to it; without one nothing is counted, and nothing costs.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

namespace troupe {

// Sizes of tensors by powers of two: of a class are those of more than 2^(class - 1) bytes and at most 2^class.
constexpr size_t kOctaves = 64;

// Since `start_meter`.
struct Metered {
  int64_t live_bytes = 0;  // of meta tensors that are there
  int64_t peak_bytes = 0;  // the most of them at once, since the start or the last `reset_meter_peak`
  std::array<int64_t, kOctaves> made_bytes{};  // of all that were made, by `octave_of` of each
  double flops = 0;         // of matrix products and convolutions, forward and backward; an addition and a multiplication are two
  double narrow_flops = 0;  // of these, of operands of 16 bits
  int64_t ring_bytes = 0;  // of complete tensors that went round a group, an all-reduce counted twice
  int64_t num_rings = 0;
  std::set<std::string> unruled;  // operators that have no rule of shapes, and keep all that they are given and give
};

// Starts the calling thread's count at zero, by the costs of the host's kernels or of a GPU's.
void start_meter(bool of_gpu);
// It counts no more; what it has made may outlive that.
void stop_meter();
Metered read_meter();
// Whether the calling thread counts.
bool meters();
// Whether the calling thread counts what a GPU's kernels take.
bool meters_gpu();
void reset_meter_peak();

// Where the calling thread counts.
void count_flops(double flops, const at::Tensor& operand);
void count_unruled(const std::string& op);
// `passes` of a tensor of `bytes` round the ranks.
void count_rings(int64_t passes, int64_t bytes);

// Puts the allocator that charges in place of libtorch's for meta tensors, which have none. Idempotent; never taken back.
void install_meter();

}  // namespace troupe
