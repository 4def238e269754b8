// Whether no element of any tensor is infinite or NaN.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/isfinite.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <type_traits>

#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"
#include "kernels/register.h"

namespace troupe {
namespace {

constexpr int64_t kScanBlock = 1 << 14;  // elements; between blocks a thread stops when another has found something

// An exponent of all ones marks infinity and NaN in each format.
TROUPE_INLINE bool is_finite(float value) { return (bits_of(value) & 0x7F800000u) != 0x7F800000u; }
TROUPE_INLINE bool is_finite(c10::BFloat16 value) { return (value.x & 0x7F80u) != 0x7F80u; }
TROUPE_INLINE bool is_finite(c10::Half value) { return (value.x & 0x7C00u) != 0x7C00u; }

template <class Element>
struct AllFinite {
  static TROUPE_INLINE bool run(const Element* from, int64_t numel) {
    int num_bad = 0;
    for (int64_t i = 0; i < numel; i++) num_bad += !is_finite(from[i]);
    return num_bad == 0;
  }
};

template <class Element>
bool contiguous_is_finite(const at::Tensor& tensor) {
  const Element* from = tensor.data_ptr<Element>();
  std::atomic<bool> finite{true};
  const int64_t num_blocks = (tensor.numel() + kScanBlock - 1) / kScanBlock;
  at::parallel_for(0, num_blocks, grain_rows(kScanBlock), [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last && finite.load(std::memory_order_relaxed); block++) {
      const int64_t length = std::min(kScanBlock, tensor.numel() - block * kScanBlock);
      if (!run_best<AllFinite<Element>>(from + block * kScanBlock, length)) finite.store(false, std::memory_order_relaxed);
    }
  });
  return finite;
}

bool are_finite(at::TensorList tensors) {
  for (const at::Tensor& tensor : tensors) {
    bool finite = true;
    const bool known = with_float_type(tensor.scalar_type(), [&](auto* type) {
      finite = contiguous_is_finite<std::remove_pointer_t<decltype(type)>>(tensor.contiguous());
    });
    if (!known) finite = at::isfinite(tensor).all().item<bool>();
    if (!finite) return false;
  }
  return true;
}

TROUPE_KERNEL(all_finite, are_finite);

bool all_finite(at::TensorList tensors) { return all_finite_kernel(tensors); }

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) { m.def("all_finite(Tensor[] tensors) -> bool"); }

// An empty list names no backend, and is finite.
TORCH_LIBRARY_IMPL(troupe, CompositeExplicitAutograd, m) { m.impl("all_finite", all_finite); }

}  // namespace troupe
