// A chain as the text of a kernel for CUDA, which a host's compiler takes too (test/gpu/on-host).
#pragma once

#include <string>

#include "core/programs/chain.h"

namespace troupe {

constexpr const char* kChainKernel = "chain";  // its name in the text
constexpr unsigned kChainThreads = 256;         // of its blocks

// The kernel's parameters: a pointer for each source with memory, a pointer for each output, `bool wide` (whether four elements
// may be read and written at once: pointers of what is read so are multiples of 16 bytes), and how many elements there are, 8 bytes. With
// rows a warp of kChainLanes threads takes one at a time, and nothing is wide. Sums have the bits of the CPU's pass.
// Chains that differ in their number of elements alone have the same text.
std::string chain_text(const Chain& chain);

// Whether four elements of a source lie side by side, for a chain of `numel` elements.
bool reads_wide(const ChainSource& source, int64_t numel);

}  // namespace troupe
