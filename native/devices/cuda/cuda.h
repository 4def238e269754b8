// Prepares libtorch's CUDA before the first GPU is used, and reads a GPU's memory use.
#pragma once

#include <c10/core/Stream.h>

#include <cstdint>

namespace troupe::cuda {

// From now on memory of GPUs stands in the ledger under the tag of the thread that asked for it, and libtorch's operators give
// the same bits each time, where they can. Nothing happens where there is no GPU.
void prepare();

// Its cudaStream_t.
void* native_stream(const c10::Stream& stream);

struct DeviceMemory {
  int64_t free_bytes, total_bytes;  // of the GPU, as CUDA reports: other processes' too
  int64_t held_bytes;               // by the caching allocator, in use or cached
  int64_t live_bytes;               // of these in use: rounded up to blocks of 512 bytes
};

DeviceMemory device_memory(int64_t index);

// Gives cached memory that no tensor uses back to the GPUs. Nothing happens before the first use of one.
void release_cached_memory();

}  // namespace troupe::cuda
