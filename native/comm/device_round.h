// A collective of ranks that are threads of one process, carried out on their devices by operators.
#pragma once

#include <vector>

#include "comm/operation.h"

namespace troupe::comm {

// Carries out the operation of which these are the parts, by participant, in the calling thread's stream: whole, in rank order
// where ranks become one. Returns when all is issued.
void run_on_device(const std::vector<Operation>& parts);

}  // namespace troupe::comm
