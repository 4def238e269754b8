// The kinds of communicators that there are.
#pragma once

#include <memory>

#include "comm/communicator.h"

namespace troupe::comm {

// Threads of one process, through their common memory.
std::shared_ptr<Communicator> make_local(Communicator::Identity identity);

// Threads or processes, through Gloo. Throws GLOO_UNAVAILABLE, and COLLECTIVE_TIMEOUT when not all connect in time.
std::shared_ptr<Communicator> make_gloo(Communicator::Identity identity, const Look& look);

// GPUs, one for each rank: the thread's current device. Throws NCCL_UNAVAILABLE, and as Gloo does.
std::shared_ptr<Communicator> make_nccl(Communicator::Identity identity, const Look& look);

}  // namespace troupe::comm
