// The classes of a vocabulary that a rank has, for the kernels of the CPU and of CUDA.
#pragma once

#include <cstdint>

namespace troupe {

struct Classes {
  const int64_t* targets;
  int64_t first;  // class of column 0
  int64_t all;    // classes of all ranks
  int64_t ignore_index;
  const float* weights;  // of those that are here; null where label smoothing is off
};

}  // namespace troupe
