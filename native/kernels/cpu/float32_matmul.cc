// libtorch gives float32 products to MKL, which on AMD keeps to AVX2; its other library, oneDNN, uses AVX-512 there. On a
// Zen 5 core: 220 GFLOP/s instead of 100.

#include "kernels/cpu/float32_matmul.h"

#include <ATen/Context.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/bmm_cpu_dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>

#include <limits>

#include "kernels/cpu/onednn_matmul.h"

namespace troupe {
namespace {

// Multiplications below which oneDNN's fixed cost of some 15 us per product loses to MKL.
constexpr int64_t kMinMultiplications = int64_t{1} << 21;

#if defined(__x86_64__) && defined(__GNUC__)
bool is_wide() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

bool is_amd() { return __builtin_cpu_is("amd"); }
bool is_intel() { return __builtin_cpu_is("intel"); }
#else
bool is_wide() { return false; }
bool is_amd() { return false; }
bool is_intel() { return false; }
#endif

// Older versions refuse float32, or were built without oneDNN: only a try tells.
bool onednn_multiplies_floats() {
  if (!at::native::mkldnn_matmul) return false;
  try {
    const at::Tensor ones = at::ones({16, 16}, at::kFloat);
    at::Tensor product = at::empty({16, 16}, at::kFloat);
    at::native::mkldnn_matmul(ones, ones, product, 0.0f, 1.0f);
    return product.eq(16).all().item<bool>();
  } catch (const c10::Error&) {
    return false;
  }
}

}  // namespace

bool chooses_float32_library() {
  static const bool chooses = is_wide() && is_amd() && onednn_multiplies_floats();
  return chooses;
}

bool mkl_keeps_to_avx2() {
  static const bool keeps = is_amd() && at::hasMKL();
  return keeps;
}

bool mkl_may_use_avx512() { return is_wide() && is_intel() && at::hasMKL(); }

bool onednn_is_quicker(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() * b.size(-1) >= least_for_onednn();
}

int64_t least_for_onednn() {
  return chooses_float32_library() ? kMinMultiplications : std::numeric_limits<int64_t>::max();
}

void multiply_float32(const at::Tensor& a, const at::Tensor& b, const at::Tensor& sum, bool add) {
  if (onednn_is_quicker(a, b)) {
    at::native::mkldnn_matmul(a, b, sum, add ? 1.0f : 0.0f, 1.0f);
    return;
  }
  at::Tensor out = sum;
  if (add) {
    at::cpu::addmm_outf(sum, a, b, 1, 1, out);
  } else {
    at::cpu::mm_outf(a, b, out);
  }
}

at::Tensor multiply_float32_batches(const at::Tensor& a, const at::Tensor& b) {
  if (!onednn_is_quicker(a, b)) return at::cpu::bmm(a, b);
  at::Tensor product = at::empty({a.size(0), a.size(1), b.size(2)}, a.options());
  at::native::mkldnn_matmul(a, b, product, 0.0f, 1.0f);
  return product;
}

}  // namespace troupe
