#include "kernels/cpu/isa.h"

#include <c10/util/Exception.h>

#include <cstdlib>
#include <string>

#if TROUPE_HAS_AMX
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace troupe {
namespace {

constexpr const char* kNames[] = {"scalar", "avx2", "avx512", "amx"};

// Asks the system for the tiles too, which a process has only then.
bool has_amx() {
#if TROUPE_HAS_AMX && defined(SYS_arch_prctl)
  constexpr int kAskForState = 0x1023, kTileData = 18;
  return __builtin_cpu_supports("amx-bf16") && __builtin_cpu_supports("avx512bf16") && syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
#else
  return false;
#endif
}

Isa best_isa() {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return has_amx() ? Isa::amx : Isa::avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::avx2;
#endif
  return Isa::scalar;
}

Isa chosen_isa() {
  const Isa best = best_isa();
  const char* forced = std::getenv("TROUPE_ISA");
  if (!forced || !*forced) return best;
  for (Isa candidate : {Isa::scalar, Isa::avx2, Isa::avx512, Isa::amx}) {
    if (std::string(forced) == kNames[static_cast<int>(candidate)] && candidate <= best) return candidate;
  }
  TORCH_CHECK(false, "[isa] expected TROUPE_ISA to be scalar, avx2, avx512 or amx, and one that this machine has, got ", forced,
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
