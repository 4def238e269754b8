// A processor without bfloat16 instructions leaves libtorch a loop over single numbers (1 GFLOP/s where float32 makes 77)
// or oneDNN's emulation (a third of float32's rate under AVX-512, a quarter under AVX2). Here both operands are widened a
// panel at a time into scratch that stays in the cache, multiplied as float32, and the sum is rounded once at its end. A
// number is widened once for each kPanel numbers that it multiplies, some hundredths of the product's time; keeping wide copies of
// the weights instead would save that and cost twice their memory, which is what bfloat16 is chosen for.

#include "kernels/cpu/bfloat16_matmul.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "kernels/cpu/float32_matmul.h"
#include "kernels/cpu/onednn_matmul.h"

namespace troupe {
namespace {

// Each way: three panels of 4 MiB.
constexpr int64_t kPanel = 1024;
constexpr int64_t kMaxPanelElements = kPanel * kPanel;

// oneDNN's own variable, under its two names.
bool onednn_hides_bfloat16() {
  for (const char* variable : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    const char* value = std::getenv(variable);
    if (!value) continue;
    for (const char* narrow :
         {"SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX2_VNNI_2", "AVX512_CORE", "AVX512_CORE_VNNI"}) {
      if (std::string(value) == narrow) return true;
    }
  }
  return false;
}

bool processor_lacks_bfloat16() {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  return !__builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

at::Tensor widened(const at::Tensor& panel) { return panel.to(at::kFloat); }

// The sum of one tile of `out`, panel after panel along the inner dim.
void multiply_tile(const at::Tensor& a_MK, const at::Tensor& b_KN, const at::Tensor& out_MN, bool add) {
  const at::Tensor sum_MN = at::empty(out_MN.sizes(), out_MN.options().dtype(at::kFloat));
  if (add) sum_MN.copy_(out_MN);
  for (int64_t k = 0; k < a_MK.size(1); k += kPanel) {
    const int64_t count = std::min(kPanel, a_MK.size(1) - k);
    multiply_float32(widened(a_MK.narrow(1, k, count)), widened(b_KN.narrow(0, k, count)), sum_MN, add || k > 0);
  }
  out_MN.copy_(sum_MN);
}

}  // namespace

bool multiplies_bfloat16_in_panels() {
#if defined(__x86_64__)
  static const bool panels = processor_lacks_bfloat16() || onednn_hides_bfloat16() || !at::native::mkldnn_matmul;
  return panels;
#else
  return false;
#endif
}

void multiply_bfloat16(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out, bool add) {
  if (a.size(1) == 0) {
    if (!add) out.zero_();
    return;
  }
  for (int64_t n = 0; n < out.size(1); n += kPanel) {
    const int64_t columns = std::min(kPanel, out.size(1) - n);
    for (int64_t m = 0; m < out.size(0); m += kPanel) {
      const int64_t rows = std::min(kPanel, out.size(0) - m);
      multiply_tile(a.narrow(0, m, rows), b.narrow(1, n, columns), out.narrow(0, m, rows).narrow(1, n, columns), add);
    }
  }
}

at::Tensor multiply_bfloat16_batches(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor out = at::empty({a.size(0), a.size(1), b.size(2)}, a.options());
  const int64_t largest = std::max({a.size(1) * a.size(2), b.size(1) * b.size(2), out.size(1) * out.size(2), int64_t{1}});
  const int64_t together = kMaxPanelElements / largest;
  for (int64_t g = 0; g < a.size(0); g += std::max<int64_t>(1, together)) {
    if (together < 2) {
      multiply_bfloat16(a.select(0, g), b.select(0, g), out.select(0, g), false);
      continue;
    }
    const int64_t count = std::min(together, a.size(0) - g);
    out.narrow(0, g, count)
        .copy_(multiply_float32_batches(widened(a.narrow(0, g, count)), widened(b.narrow(0, g, count))));
  }
  return out;
}

}  // namespace troupe
