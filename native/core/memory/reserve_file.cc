#include "core/memory/reserve_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

namespace troupe {

// A signal may undo what one call has reserved, and a profiler sends a thousand a second: a short call comes to its end between two.
int reserve_file(int descriptor, int64_t offset, int64_t bytes) {
  constexpr int64_t kStretch = int64_t{4} << 20;
  for (const int64_t end = offset + bytes; offset < end;) {
    const int64_t stretch = std::min(kStretch, end - offset);
    const int error = posix_fallocate(descriptor, static_cast<off_t>(offset), static_cast<off_t>(stretch));
    if (error == EINTR) continue;
    if (error != 0) return error;
    offset += stretch;
  }
  return 0;
}

}  // namespace troupe
