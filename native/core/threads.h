// How many threads the arithmetic of one JavaScript thread may use.
#pragma once

namespace troupe {

// For the calling thread alone: OpenMP, MKL and oneDNN alike. Two ranks on two cores take one each.
void set_num_threads(int num_threads);
int num_threads();

// Of OpenMP alone, where that is what libtorch computes by; takes some nanoseconds.
void set_openmp_threads(int num_threads);

}  // namespace troupe
