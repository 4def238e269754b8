#include "core/threads.h"

#include <ATen/Parallel.h>

namespace troupe {

void set_num_threads(int num_threads) { at::set_num_threads(num_threads); }

int num_threads() { return at::get_num_threads(); }

}  // namespace troupe
