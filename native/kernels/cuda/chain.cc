// Chains of elementwise operators: a kernel for each, of its own text.
#include <algorithm>

#include "core/programs/chain_runner.h"
#include "kernels/cuda/call.h"
#include "kernels/cuda/chain_text.h"
#include "kernels/cuda/text_kernel.h"

namespace troupe::cuda {
namespace {

constexpr int64_t kRowsOfBlock = kChainThreads / kChainLanes;
constexpr int64_t kMostChainBlocks = 132 * 16;  // a few waves on the largest GPUs; more work is looped over

void run_chain_text(const std::shared_ptr<const Chain>& chain, const std::vector<at::Tensor>& sources,
                    const std::vector<at::Tensor>& outputs) {
  const Call call(outputs[0]);
  if (chain->kernel == nullptr) chain->kernel = TextKernel::of(chain_text(*chain), kChainKernel, outputs[0].device().index());
  bool wide = true;
  std::vector<void*> pointers;
  for (size_t i = 0; i < sources.size(); i++) {
    if (!sources[i].defined()) continue;
    pointers.push_back(sources[i].data_ptr());
    wide = wide && (!reads_wide(chain->sources[i], chain->numel) || reinterpret_cast<uintptr_t>(pointers.back()) % 16 == 0);
  }
  for (const at::Tensor& output : outputs) {
    pointers.push_back(output.data_ptr());
    wide = wide && reinterpret_cast<uintptr_t>(pointers.back()) % 16 == 0;
  }
  const int64_t rows = chain->numel / chain->width;
  auto count = static_cast<unsigned long long>(chain->has_rows() ? rows : chain->numel);
  std::vector<void*> arguments;
  for (void*& pointer : pointers) arguments.push_back(&pointer);
  arguments.push_back(&wide);
  arguments.push_back(&count);
  const int64_t threads = wide ? (chain->numel + 3) / 4 : chain->numel;
  const int64_t needed = chain->has_rows() ? (rows + kRowsOfBlock - 1) / kRowsOfBlock : (threads + kChainThreads - 1) / kChainThreads;
  const int64_t blocks = std::min<int64_t>(kMostChainBlocks, needed);
  static_cast<const TextKernel*>(chain->kernel.get())->launch(call.stream(), static_cast<unsigned>(blocks), kChainThreads, arguments.data());
}

RunChain find_runner(const c10::Device& device) {
  return TextKernel::refusal(device.index()).empty() ? run_chain_text : nullptr;
}

[[maybe_unused]] const bool known = [] {
#if TROUPE_CUDA_ON_HOST
  set_chain_runner(c10::DeviceType::CPU, find_runner);
#else
  set_chain_runner(c10::DeviceType::CUDA, find_runner);
#endif
  return true;
}();

}  // namespace
}  // namespace troupe::cuda
