// Runs chains on devices: each kind brings its own way.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <memory>
#include <vector>

#include "core/programs/chain.h"

namespace troupe {

// Queues a chain in the calling thread's stream. `sources`: undefined for scalars; `outputs`: fresh, one or more.
using RunChain = void (*)(const std::shared_ptr<const Chain>& chain, const std::vector<at::Tensor>& sources,
                          const std::vector<at::Tensor>& outputs);

// The way of a device; null where there is none: on the host, and where kernels cannot be compiled.
RunChain chain_runner(const c10::Device& device);

// `find` answers for devices of a kind.
void set_chain_runner(c10::DeviceType kind, RunChain (*find)(const c10::Device&));

}  // namespace troupe
