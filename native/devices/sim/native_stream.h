// What C code is handed for a stream of the pretend device, where CUDA's would be handed a cudaStream_t: for a pretend NCCL.
#pragma once

extern "C" {
struct TroupeSimStream {
  // Puts run(argument) behind all that the stream holds; on a thread of the stream's own, late. It must not throw.
  void (*launch)(struct TroupeSimStream* stream, const char* name, void (*run)(void*), void* argument);
  // Where what `launch` runs finds memory that tensors name by `address`; null for what is not the device's.
  void* (*reach)(struct TroupeSimStream* stream, const void* address);
};
}

#ifdef __cplusplus
#if __has_include(<c10/core/Stream.h>)
#include <c10/core/Stream.h>
namespace troupe::sim {
// A TroupeSimStream, which lives as long as the process.
void* native_stream(const c10::Stream& stream);
}  // namespace troupe::sim
#endif
#endif
