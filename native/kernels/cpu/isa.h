// Runs one kernel body compiled for three instruction sets and picks, at run time, the best this machine has.
//
// A body is a struct with a static, always inlined `run` of plain loops. It is at once the reference (compiled for the
// baseline it is the code that is read) and the kernel (the compiler vectorises the same loops for AVX2 and AVX-512).
// Bodies whose every operation is elementwise IEEE arithmetic, or which spell out the order of their sums, give the same
// bits on all three: nothing is contracted (-ffp-contract=off) and nothing reassociated.
#pragma once

#include <cstdint>

namespace troupe {

// `amx` is AVX-512 with tiles that multiply bfloat16.
enum class Isa { scalar, avx2, avx512, amx };

// The instruction set kernels use: the best of this machine, or the one that the environment variable TROUPE_ISA
// (scalar, avx2, avx512, amx) names, if the machine has it. Decided once per process.
Isa isa();

// "scalar", "avx2", "avx512" or "amx".
const char* isa_name();

// Whether the compiler knows AMX.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__CUDACC__) && __has_include(<amxbf16intrin.h>)
#define TROUPE_HAS_AMX 1
#else
#define TROUPE_HAS_AMX 0
#endif

// Bodies and what they call must become part of the function that is compiled for an instruction set; the second form goes
// behind the parameters of a lambda. What is elementary is compiled for GPUs too.
#ifdef __CUDACC__
#define TROUPE_INLINE __host__ __device__ __forceinline__
#else
#define TROUPE_INLINE inline __attribute__((always_inline))
#endif
#define TROUPE_INLINE_LAMBDA __attribute__((always_inline))

// Elements that are worth a thread of their own: some 10 us of work.
constexpr int64_t kGrainElements = 1 << 16;

// The grain of a parallel loop over rows of `dim` elements.
inline int64_t grain_rows(int64_t dim) { return dim >= kGrainElements ? 1 : kGrainElements / (dim > 0 ? dim : 1); }

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__CUDACC__)
#define TROUPE_AVX2 __attribute__((target("avx2,fma,f16c,bmi,bmi2")))
#define TROUPE_AVX512_TARGET "avx512f,avx512bw,avx512dq,avx512vl,fma,f16c,bmi,bmi2,prefer-vector-width=512"
#define TROUPE_AVX512 __attribute__((target(TROUPE_AVX512_TARGET)))
#define TROUPE_AVX512_BF16 __attribute__((target(TROUPE_AVX512_TARGET ",avx512bf16")))

namespace detail {
template <class Body, class... Arguments>
TROUPE_AVX2 auto run_avx2(Arguments... arguments) {
  return Body::run(arguments...);
}
template <class Body, class... Arguments>
TROUPE_AVX512 auto run_avx512(Arguments... arguments) {
  return Body::run(arguments...);
}
}  // namespace detail

template <class Body, class... Arguments>
auto run_best(Arguments... arguments) {
  switch (isa()) {
    case Isa::amx:
    case Isa::avx512: return detail::run_avx512<Body>(arguments...);
    case Isa::avx2: return detail::run_avx2<Body>(arguments...);
    default: return Body::run(arguments...);
  }
}
#else
#define TROUPE_AVX512
#define TROUPE_AVX512_BF16

template <class Body, class... Arguments>
auto run_best(Arguments... arguments) {
  return Body::run(arguments...);
}
#endif

}  // namespace troupe
