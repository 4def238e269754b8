// CUDA's compiler at run time, opened where the first kernel asks for it and never linked: an addon loads without it.
#pragma once

#include <string>

namespace troupe::cuda {

// Why no kernel can be compiled for GPUs of a compute capability (80, 90, 100); empty if they can. Looked up once. TROUPE_NVRTC names the
// library; else it is looked for by its names, and in the folders around libtorch's.
std::string nvrtc_refusal(int capability);

// The machine code of a text's kernels, with no multiply-add fused but those it names, with IEEE division and square root. Kept in
// the folder `kernels` of the user's cache (TROUPE_CACHE, XDG_CACHE_HOME, ~/.cache), by text, capability and the compiler's version.
// Throws std::runtime_error with the compiler's words.
std::string compiled_by_nvrtc(const std::string& text, int capability);

}  // namespace troupe::cuda
