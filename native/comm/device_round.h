// A collective of ranks that are threads of one process, carried out on their devices by operators.
#pragma once

#include <vector>

#include "comm/operation.h"

namespace troupe::comm {

// Carries out one operation in the calling thread's stream. `parts` are the participants' parts; reductions add in rank order.
// Returns when all of it is issued.
void run_on_device(const std::vector<Operation>& parts);

}  // namespace troupe::comm
