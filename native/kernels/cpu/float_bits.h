// A float32 and the bits it is made of.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa.h"

namespace troupe {

TROUPE_INLINE uint32_t bits_of(float value) { return __builtin_bit_cast(uint32_t, value); }
TROUPE_INLINE float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }

}  // namespace troupe
