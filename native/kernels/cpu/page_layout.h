// What kernels that read keys and values in pages agree on, so that they give the same bits everywhere.
#pragma once

namespace troupe {

constexpr int kPagePositions = 8;
constexpr int kKeyLanes = 32;
constexpr int kFeatureSums = 4;  // of one score, feature d in sum d mod 4: one alone waits for itself

}  // namespace troupe
