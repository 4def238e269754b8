// A chain as the text of a kernel for CUDA, which a host's compiler takes too (test/gpu/on-host).
#pragma once

#include <string>

#include "core/programs/chain.h"

namespace troupe {

constexpr const char* kChainKernel = "chain";  // its name in the text

// The kernel's parameters: `const float*` for each source with memory, `float*` for each output, `bool wide` (whether four elements
// may be read and written at once: all pointers are multiples of 16 bytes), and how many elements there are, 8 bytes. Chains
// that differ in their number of elements alone have the same text.
std::string chain_text(const Chain& chain);

}  // namespace troupe
