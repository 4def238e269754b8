// Registers kernels whose host part is the same for the CPU and for CUDA: it looks at its tensors' device itself.
//
//   TROUPE_KERNELS(m) { m.impl("swiglu", swiglu); }
#pragma once

#include <torch/library.h>

#define TROUPE_KERNELS(library) TROUPE_KERNELS_NAMED(library, C10_CONCATENATE(register_kernels_, C10_UID))
#define TROUPE_KERNELS_NAMED(library, name)                     \
  static void name(torch::Library& library);                    \
  TORCH_LIBRARY_IMPL(troupe, CPU, m) { name(m); }               \
  TORCH_LIBRARY_IMPL(troupe, CUDA, m) { name(m); }              \
  static void name(torch::Library& library)
