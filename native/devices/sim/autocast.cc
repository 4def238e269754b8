// Autocast on the device: the CPU's choice for every operator, so that its bits are the CPU's.
#include "core/autograd/casts.h"
#include "core/torch_version.h"
#include "devices/sim/kernels.h"
#include "devices/sim/stand_ins.h"

#if TROUPE_TORCH_AT_LEAST(2, 9)

namespace troupe::sim {
namespace {

struct Sim {
  static bool has(const at::Tensor& tensor) { return is_sim(tensor); }
};

}  // namespace

void register_autocast(torch::Library& aten) { Casts<Sim>::register_all(aten); }

}  // namespace troupe::sim

#endif
