#include "comm/gloo.h"

#include "core/error.h"

#if HAVE_GLOO

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <chrono>

namespace troupe::comm {

bool gloo_built() { return true; }

void check_gloo() {
  auto options = c10d::ProcessGroupGloo::Options::create(std::chrono::seconds(10));
  // By address: the default device asks for this host's name, which not every machine can resolve.
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  c10d::ProcessGroupGloo group(c10::make_intrusive<c10d::HashStore>(), /*rank=*/0, /*size=*/1, options);
  std::vector<at::Tensor> sum = {at::ones({2})};
  group.allreduce(sum)->wait();
  if (!at::equal(sum[0], at::ones({2}))) {
    throw CodedError("GLOO_UNAVAILABLE", "[gloo] the sum over one rank equals its input: it does not");
  }
}

}  // namespace troupe::comm

#else

namespace troupe::comm {

bool gloo_built() { return false; }

void check_gloo() {
  throw CodedError("GLOO_UNAVAILABLE",
                   "[gloo] an addon built with Gloo: Gloo's headers were not there (apt install libgloo-dev, npm run build:native)");
}

}  // namespace troupe::comm

#endif
