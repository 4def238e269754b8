// Reads and writes float32, bfloat16 and float16 arrays as float, with integer operations that every instruction set has
// and the compiler vectorises. Rounding is to nearest, ties to even, as in libtorch; bits are the same everywhere.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cstdint>

#include "kernels/cpu/float_bits.h"
#include "kernels/cpu/isa.h"

namespace troupe {

TROUPE_INLINE float load(const float* from, int64_t index) { return from[index]; }
TROUPE_INLINE float load(const c10::BFloat16* from, int64_t index) { return float_of_bfloat16(from[index].x); }
TROUPE_INLINE float load(const c10::Half* from, int64_t index) { return float_of_float16(from[index].x); }

TROUPE_INLINE void store(float* to, int64_t index, float value) { to[index] = value; }
TROUPE_INLINE void store(c10::BFloat16* to, int64_t index, float value) { to[index].x = bfloat16_of(value); }
TROUPE_INLINE void store(c10::Half* to, int64_t index, float value) { to[index].x = float16_of(value); }

// Calls `body` with a null pointer of the C++ type of `dtype`: float, BFloat16 or Half. False for any other dtype.
template <class Function>
bool with_float_type(c10::ScalarType dtype, const Function& body) {
  switch (dtype) {
    case c10::ScalarType::Float: body(static_cast<float*>(nullptr)); return true;
    case c10::ScalarType::BFloat16: body(static_cast<c10::BFloat16*>(nullptr)); return true;
    case c10::ScalarType::Half: body(static_cast<c10::Half*>(nullptr)); return true;
    default: return false;
  }
}

}  // namespace troupe
