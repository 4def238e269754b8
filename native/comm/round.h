// One operation carried out by one rank: which bytes it sends to whom, and what it makes of those it gets.
#pragma once

#include "comm/wire.h"

namespace troupe::comm {

// Exchanges signatures among `ranks` and carries out `operation`, this rank's part of number `sequence`. Throws as Wire.
void run_round(const RoundSetting& setting, const std::vector<int>& ranks, int64_t sequence, const Operation& operation);

}  // namespace troupe::comm
