#include "core/threads.h"

#include <ATen/Parallel.h>

#ifdef _OPENMP
#include <omp.h>
#endif

// MKL is part of libtorch, where libtorch has it.
#ifdef __linux__
extern "C" __attribute__((weak)) int MKL_Set_Num_Threads_Local(int);
#endif

namespace troupe {

void set_num_threads(int num_threads) {
  // libtorch gives a thread the number that was last set anywhere in the process when the thread first asks. Asking now
  // has that behind us, so that another thread's later setting cannot overwrite this one.
  at::get_num_threads();
  at::set_num_threads(num_threads);
}

int num_threads() { return at::get_num_threads(); }

void set_threads_of_operators([[maybe_unused]] int num_threads) {
#ifdef _OPENMP
  omp_set_num_threads(num_threads);
#endif
#ifdef __linux__
  if (MKL_Set_Num_Threads_Local != nullptr) MKL_Set_Num_Threads_Local(num_threads);
#endif
}

}  // namespace troupe
