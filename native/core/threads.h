// How many threads the arithmetic of one JavaScript thread may use.
#pragma once

namespace troupe {

// For the calling thread alone: OpenMP, MKL and oneDNN alike. Two ranks on two cores take one each.
void set_num_threads(int num_threads);
int num_threads();

}  // namespace troupe
