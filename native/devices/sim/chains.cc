// Chains of elementwise operators: the CPU's pass, late in the queue.
#include "core/programs/chain_runner.h"
#include "core/torch_version.h"
#include "devices/sim/device.h"
#include "devices/sim/kernels.h"
#include "devices/sim/late.h"

#if TROUPE_TORCH_AT_LEAST(2, 9)

namespace troupe::sim {
namespace {

void run_chain_late(const std::shared_ptr<const Chain>& chain, const std::vector<at::Tensor>& sources,
                    const std::vector<at::Tensor>& outputs) {
  StandIns stand_ins(StandIns::Over::device);
  std::vector<const void*> from;
  std::vector<void*> to;
  for (const at::Tensor& source : sources) from.push_back(source.defined() ? stand_ins.of(source).const_data_ptr() : nullptr);
  for (const at::Tensor& output : outputs) to.push_back(stand_ins.of(output).mutable_data_ptr());
  push_late(current_queue(outputs[0].device().index()), "chain",
            [chain, from = std::move(from), to = std::move(to)] { run_chain(*chain, from, to); });
}

}  // namespace

void register_chains() {
  set_chain_runner(c10::DeviceType::PrivateUse1, [](const c10::Device&) -> RunChain { return run_chain_late; });
}

}  // namespace troupe::sim

#endif
