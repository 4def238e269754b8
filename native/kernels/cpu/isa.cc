#include "kernels/cpu/isa.h"

#include <c10/util/Exception.h>

#include <cstdlib>
#include <string>

namespace troupe {
namespace {

constexpr const char* kNames[] = {"scalar", "avx2", "avx512"};

Isa best_isa() {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return Isa::avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::avx2;
#endif
  return Isa::scalar;
}

Isa chosen_isa() {
  const Isa best = best_isa();
  const char* forced = std::getenv("TROUPE_ISA");
  if (!forced || !*forced) return best;
  for (Isa candidate : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (std::string(forced) == kNames[static_cast<int>(candidate)] && candidate <= best) return candidate;
  }
  TORCH_CHECK(false, "[isa] expected TROUPE_ISA to be scalar, avx2 or avx512, and one that this machine has, got ", forced,
              " (unset it to use the best)");
}

}  // namespace

Isa isa() {
  static const Isa chosen = chosen_isa();
  return chosen;
}

const char* isa_name() {
  return kNames[static_cast<int>(isa())];
}

}  // namespace troupe
