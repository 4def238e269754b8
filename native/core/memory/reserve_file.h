// Reserving a file's blocks on its disk or in memory, so that no later write finds no room.
#pragma once

#include <cstdint>

namespace troupe {

// Reserves `bytes` from `offset` on. Returns 0, or the error's number.
int reserve_file(int descriptor, int64_t offset, int64_t bytes);

}  // namespace troupe
