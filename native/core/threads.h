// How many threads the arithmetic of one JavaScript thread may use.
#pragma once

namespace troupe {

// For the calling thread alone: OpenMP, MKL and oneDNN alike. Two ranks on two cores take one each.
void set_num_threads(int num_threads);
int num_threads();

// The same for OpenMP and MKL alone, in some nanoseconds: libtorch keeps its number.
void set_threads_of_operators(int num_threads);

}  // namespace troupe
