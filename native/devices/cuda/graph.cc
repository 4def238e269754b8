#include "devices/cuda/graph.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>

namespace troupe::cuda {
namespace {

// By libtorch, whose allocator keeps memory for it apart.
class CudaGraph final : public DeviceGraph {
 public:
  CudaGraph(c10::DeviceIndex device, const CudaGraph* beside, const std::function<void()>& body) : device_(device) {
    const c10::cuda::CUDAGuard guard(device);
    // Other threads, V8's among them, go on freeing and allocating.
    graph_.capture_begin(beside != nullptr ? beside->pool() : at::cuda::MempoolId_t{0, 0}, cudaStreamCaptureModeRelaxed);
    try {
      body();
    } catch (...) {
      end_quietly();
      throw;
    }
    graph_.capture_end();
  }

  void launch() override {
    const c10::cuda::CUDAGuard guard(device_);
    graph_.replay();
  }

 private:
  at::cuda::MempoolId_t pool() const { return const_cast<at::cuda::CUDAGraph&>(graph_).pool(); }

  // A capture that failed ends with an error of its own, which says less.
  void end_quietly() {
    try {
      graph_.capture_end();
    } catch (...) {
    }
  }

  const c10::DeviceIndex device_;
  at::cuda::CUDAGraph graph_;
};

}  // namespace

std::unique_ptr<DeviceGraph> capture(int64_t index, const DeviceGraph* beside, const std::function<void()>& body) {
  return std::make_unique<CudaGraph>(static_cast<c10::DeviceIndex>(index), static_cast<const CudaGraph*>(beside), body);
}

}  // namespace troupe::cuda
