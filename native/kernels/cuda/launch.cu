#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "kernels/cuda/launch.h"

namespace troupe::cuda {

void check_launch(const char* kernel) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return;
  throw std::runtime_error("[" + std::string(kernel) + "] expected CUDA to take the launch, got \"" + cudaGetErrorString(error) + "\"");
}

int64_t row_blocks(int64_t rows) {
  constexpr int64_t kMinRows = 16, kMaxBlocks = 64;
  return rows < kMinRows ? 1 : (rows / kMinRows < kMaxBlocks ? rows / kMinRows : kMaxBlocks);
}

}  // namespace troupe::cuda
