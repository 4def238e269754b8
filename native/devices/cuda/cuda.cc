// libtorch's CUDA as a kind of device: prepared before the first GPU is used, and a GPU's memory use.
#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <type_traits>
#include <unordered_map>

#include "core/device/device.h"
#include "core/memory/allocator.h"
#include "devices/cuda/graph.h"

namespace troupe::cuda {
namespace {

std::atomic<bool> prepared{false};

// Blocks of the caching allocator that are in use, each with what it is charged to. Never freed: tensors in static storage
// are freed after every destructor has run.
class Blocks {
 public:
  static Blocks& get() {
    static Blocks* const blocks = new Blocks;
    return *blocks;
  }

  void add(size_t address, int64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    blocks_[address] = {charge_memory(bytes, present_tag()), bytes};
  }

  void remove(size_t address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) return;  // taken before anybody looked
    credit_memory(found->second.charge, found->second.bytes);
    blocks_.erase(found);
  }

 private:
  struct Block {
    void* charge;
    int64_t bytes;
  };
  std::mutex mutex_;
  std::unordered_map<size_t, Block> blocks_;
};

// Called with the allocator's lock held, in the thread that takes or gives.
template <class Entry>
void follow(const Entry& entry) {
  if (entry.action_ == Entry::ALLOC) {
    Blocks::get().add(static_cast<size_t>(entry.addr_), static_cast<int64_t>(entry.size_));
  } else if (entry.action_ == Entry::FREE_COMPLETED) {
    Blocks::get().remove(static_cast<size_t>(entry.addr_));
  }
}

// From now on memory of GPUs stands in the ledger under the tag of the thread that asked for it, and libtorch's operators give
// the same bits each time, where they can. Nothing happens where there is no GPU.
void prepare() {
  if (c10::cuda::device_count() == 0) return;
  at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
  // Operators whose libtorch has no order of their own for sums on a GPU refuse to run, and attention takes its orderly form.
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  // CUBLAS_WORKSPACE_CONFIG is left alone: what libtorch takes unasked on these GPUs gives the same bits, and a variable that is set
  // is parsed, by a regular expression, at each product: a quarter of a BERT step's time on the host of an H100.
  // float32 is float32 in convolutions too, where libtorch would round to TF32 unasked.
  at::globalContext().setAllowTF32CuDNN(false);
  // New memory need not be filled: nobody reads it before it is written, which the pretend device proves.
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker([](const auto& entry) { follow(entry); });
  prepared = true;
}

void* native_stream(const c10::Stream& stream) { return c10::cuda::CUDAStream(stream).stream(); }

DeviceMemory device_memory(int64_t index) {
  const auto device = static_cast<c10::DeviceIndex>(index);
  const c10::cuda::CUDAGuard guard(device);
  size_t free_bytes = 0, total_bytes = 0;
  const cudaError_t error = cudaMemGetInfo(&free_bytes, &total_bytes);
  TORCH_CHECK(error == cudaSuccess, "[deviceMemory] expected CUDA to tell of cuda:", index, ", got \"",
              cudaGetErrorString(error), "\"");
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device);
  return {static_cast<int64_t>(free_bytes), static_cast<int64_t>(total_bytes), stats.reserved_bytes[0].current,
          stats.allocated_bytes[0].current};
}

void release_cached_memory() {
  if (prepared) c10::cuda::CUDACachingAllocator::emptyCache();
}

const RegisteredDeviceKind known({"cuda", c10::DeviceType::CUDA, prepare, native_stream, device_memory, release_cached_memory, capture});

}  // namespace
}  // namespace troupe::cuda
