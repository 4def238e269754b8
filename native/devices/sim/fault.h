// A touch of device memory by the CPU.
#pragma once

namespace troupe::sim {

// From now on a touch of the devices' memory by the CPU says so before it ends the process, by SIGSEGV as it would anyway.
void name_faults();

}  // namespace troupe::sim
