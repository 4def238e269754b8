// The kinds of communicators that there are.
#pragma once

#include <memory>

#include "comm/communicator.h"

namespace troupe::comm {

// Threads of one process, through their common memory.
std::shared_ptr<Communicator> make_local(Communicator::Identity identity);

}  // namespace troupe::comm
