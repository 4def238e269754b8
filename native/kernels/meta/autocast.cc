#include "kernels/meta/autocast.h"

#include <torch/library.h>

#include <mutex>

#include "core/autograd/casts.h"
#include "core/torch_version.h"

namespace troupe {
namespace {

struct Meta {
  static bool has(const at::Tensor& tensor) { return tensor.defined() && tensor.is_meta(); }
};

#if TROUPE_TORCH_AT_LEAST(2, 4)
void register_casts() {
  // Never destroyed, as what they register is in use until the process ends.
  static auto* const casts =
      new torch::Library(torch::Library::IMPL, "aten", kMeteredAutocast, __FILE__, __LINE__);
  static auto* const others = new torch::Library(torch::Library::IMPL, "_", kMeteredAutocast, __FILE__, __LINE__);
  others->fallback(torch::CppFunction::makeFallthrough());
  Casts<Meta>::register_all(*casts);
}
#endif

}  // namespace

void install_metered_casts() {
#if TROUPE_TORCH_AT_LEAST(2, 4)
  static std::once_flag once;
  std::call_once(once, register_casts);
#endif
}

}  // namespace troupe
