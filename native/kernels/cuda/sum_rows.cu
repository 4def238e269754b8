// Sums of a matrix's rows.
#include "kernels/cuda/rows.cuh"

namespace troupe::cuda {
namespace {

template <class T>
struct Elements {
  const T* x_RD;
  int64_t dim;

  template <int N>
  __device__ void at(int64_t row, int64_t column, float (&terms)[1][N]) const {
    read<N>(x_RD + row * dim + column, terms[0]);
  }
};

}  // namespace

void launch_sum_rows(Stream stream, Format format, Rows rows, const void* x, float* partial, Array sums) {
  const bool wide = rows.dim % kWide == 0 && is_wide(x, format);
  with_format(format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    launch_sum_columns<1>("sum", stream, Elements<T>{static_cast<const T*>(x), rows.dim}, rows, wide, partial, {sums});
  });
}

}  // namespace troupe::cuda
