// Gloo, libtorch's CPU transport between processes. Whether it is there is decided when the addon is built (HAVE_GLOO).
#pragma once

namespace troupe::comm {

// Whether this addon was built with Gloo.
bool gloo_built();

// Sums a tensor over a group of one rank through Gloo on the loopback device: loads the whole transport, opens and
// closes its threads. Throws what Gloo throws, or CodedError when the sum is wrong. Needs gloo_built().
void check_gloo();

}  // namespace troupe::comm
