// Rows of logits: statistics and gradients, of all classes or of a rank's. See kernels/cpu/cross_entropy_rows.h and
// kernels/cpu/vocabulary_loss.cc. A block a row, which is read once for the statistics and once for the gradient; one that does not
// count is not read.
#include <cfloat>

#include "kernels/cuda/rows.cuh"

namespace troupe::cuda {
namespace {

constexpr int kMostThreads = 512;

// Calls body(Count<N>, index) for a row that may begin anywhere: elements before the first complete piece, and after the last, one by
// one. Rows of 50,257 classes begin at each of the places.
template <class T, class Body>
__device__ __forceinline__ void each_logit(const T* row, int64_t dim, const Body& body) {
  const int64_t past = reinterpret_cast<uintptr_t>(row) / sizeof(T) % kWide;
  const int64_t head = min(dim, (kWide - past) % kWide);
  const int64_t pieces = (dim - head) / kWide;
  if (threadIdx.x < head) body(Count<1>{}, threadIdx.x);
#pragma unroll 4
  for (int64_t piece = threadIdx.x; piece < pieces; piece += blockDim.x) body(Count<kWide>{}, head + piece * kWide);
  const int64_t tail = head + pieces * kWide + threadIdx.x;
  if (tail < dim) body(Count<1>{}, tail);
}

// Calls body(values, index) with the logits of a row: in order of its pieces wherever it begins, for sums that must not depend on that,
// or as each_logit has them.
template <bool in_order, class T, class Body>
__device__ __forceinline__ void read_logits(const T* row, int64_t dim, const Body& body) {
  if constexpr (in_order) {
    const bool aligned = reinterpret_cast<uintptr_t>(row) % sizeof(Wide<T>) == 0;
    const int64_t pieces = dim / kWide;
#pragma unroll 4
    for (int64_t piece = threadIdx.x; piece < pieces; piece += blockDim.x) {
      const T* from = row + piece * kWide;
      float value[kWide];
      if (aligned) {
        read<kWide>(from, value);
      } else {
#pragma unroll
        for (int j = 0; j < kWide; j++) value[j] = load(from[j]);
      }
      body(value, piece * kWide);
    }
    const int64_t tail = pieces * kWide + threadIdx.x;
    if (tail >= dim) return;
    const float value[1] = {load(row[tail])};
    body(value, tail);
  } else {
    each_logit(row, dim, [&](auto wide_or_one, int64_t i) {
      float value[decltype(wide_or_one)::value];
      read<decltype(wide_or_one)::value>(row + i, value);
      body(value, i);
    });
  }
}

// exp() of logits of a type: what 16 bits keep of it, the GPU's own function has, at a tenth of the instructions.
template <class T>
__device__ __forceinline__ float exp_of(float value) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return exp_f32(value);
  } else {
    return __expf(value);
  }
}

struct MaxAndSum {
  float max;
  float sum;  // of exp(x - max)
};

// Milakov and Gimelshein 2018, https://arxiv.org/abs/1805.02867: by each thread, then by the block.
template <bool in_order, class T>
__device__ MaxAndSum sum_exponentials(const T* row, int64_t dim) {
  MaxAndSum mine{-FLT_MAX, 0.0f};
  read_logits<in_order>(row, dim, [&](const auto& values, int64_t) {
    float max = mine.max;
#pragma unroll
    for (const float value : values) max = value > max ? value : max;
    if (max > mine.max) {
      mine.sum *= exp_of<T>(mine.max - max);
      mine.max = max;
    }
#pragma unroll
    for (const float value : values) mine.sum += exp_of<T>(value - max);
  });
  const float max = join_block<Max>(mine.max);
  return {max, sum_block(mine.sum * exp_of<T>(mine.max - max))};
}

template <class T>
__global__ void cross_entropy_rows(const T* logits, LogitRows shape, const int64_t* targets, int64_t ignore_index,
                                   float* logsumexp, double* losses) {
  const int64_t row = blockIdx.x;
  const int64_t target = targets[row];
  if (target == ignore_index) {
    if (threadIdx.x == 0) {
      losses[row] = 0;
      logsumexp[row] = 0.0f;
    }
    return;
  }
  const T* x = logits + row * shape.stride;
  const MaxAndSum sums = sum_exponentials<false>(x, shape.classes);
  if (threadIdx.x != 0) return;
  const double log_sum = log(static_cast<double>(sums.sum));
  logsumexp[row] = static_cast<float>(sums.max + log_sum);
  const bool known = target >= 0 && target < shape.classes;
  losses[row] = known ? sums.max + log_sum - load(x[target]) : __longlong_as_double(0x7FF8000000000000ll);
}

template <class T>
__device__ void clear(T* row, int64_t dim) {
  each_logit(row, dim, [&](auto wide_or_one, int64_t i) {
    constexpr int N = decltype(wide_or_one)::value;
    const float zeros[N] = {};
    write<N>(row + i, zeros);
  });
}

template <class T>
__global__ void cross_entropy_gradient(const T* logits, LogitRows shape, const float* logsumexp, const int64_t* targets,
                                       int64_t ignore_index, const float* row_weight, const float* upstream, T* to_RV) {
  const int64_t row = blockIdx.x;
  const T* x = logits + row * shape.stride;
  T* to = to_RV + row * shape.stride;
  const int64_t target = targets[row];
  const float scale = (upstream == nullptr ? 1.0f : *upstream) * (row_weight == nullptr ? 1.0f : *row_weight);
  const float all = logsumexp[row];
  for (int64_t i = shape.classes + threadIdx.x; i < shape.stride; i += blockDim.x) store(to[i], 0.0f);
  if (target == ignore_index) return clear(to, shape.classes);
  each_logit(x, shape.classes, [&](auto wide_or_one, int64_t i) {
    constexpr int N = decltype(wide_or_one)::value;
    float value[N];
    read<N>(x + i, value);
#pragma unroll
    for (int j = 0; j < N; j++) {
      const float probability = exp_of<T>(value[j] - all);
      value[j] = (i + j == target ? probability - 1.0f : probability) * scale;
    }
    write<N>(to + i, value);
  });
}

template <class T>
__global__ void vocabulary_statistics(const T* logits, LogitRows shape, Classes classes, float* to) {
  const int64_t row = blockIdx.x, num_rows = shape.rows, dim = shape.classes;
  const int64_t id = classes.targets[row], target = id - classes.first;
  if (id == classes.ignore_index) {
    if (threadIdx.x < 4) to[threadIdx.x * num_rows + row] = threadIdx.x == 1 ? 1.0f : 0.0f;
    return;
  }
  const T* x = logits + row * shape.stride;
  const MaxAndSum sums = sum_exponentials<true>(x, dim);
  float weighted = 0.0f;
  if (classes.weights != nullptr) {
    read_logits<true>(x, dim, [&](const auto& values, int64_t i) {
#pragma unroll
      for (const float value : values) weighted += classes.weights[i++] * value;
    });
    weighted = sum_block(weighted);
  }
  if (threadIdx.x != 0) return;
  const bool known = id >= 0 && id < classes.all;
  const bool here = target >= 0 && target < dim;
  to[row] = known ? sums.max : __int_as_float(0x7FC00000);
  to[num_rows + row] = sums.sum;
  to[2 * num_rows + row] = here ? load(x[target]) : 0.0f;
  to[3 * num_rows + row] = weighted;
}

template <class T>
__global__ void vocabulary_gradient(T* logits, LogitRows shape, const float* logsumexp, Classes classes,
                                    const float* coefficients) {
  const int64_t row = blockIdx.x, num_rows = shape.rows, dim = shape.classes;
  T* x = logits + row * shape.stride;
  const float a = coefficients[row], b = coefficients[num_rows + row], c = coefficients[2 * num_rows + row];
  if (a == 0.0f && b == 0.0f && c == 0.0f) return clear(x, dim);
  const int64_t target = classes.targets[row] - classes.first;
  const float all = logsumexp[row];
  each_logit(x, dim, [&](auto wide_or_one, int64_t i) {
    constexpr int N = decltype(wide_or_one)::value;
    float value[N];
    read<N>(x + i, value);
#pragma unroll
    for (int j = 0; j < N; j++) {
      float gradient = exp_of<T>(value[j] - all) * a;
      if (i + j == target) gradient -= b;
      if (classes.weights != nullptr) gradient -= c * classes.weights[i + j];
      value[j] = gradient;
    }
    write<N>(x + i, value);
  });
}

__global__ void count_targets(const int64_t* targets, int64_t rows, int64_t ignore_index, float* row_weight, double* count) {
  double mine = 0;
  for (int64_t row = threadIdx.x; row < rows; row += blockDim.x) mine += targets[row] == ignore_index ? 0 : 1;
  const double all = sum_block(mine);
  if (threadIdx.x != 0) return;
  *count = all;
  *row_weight = all == 0 ? 0.0f : 1.0f / static_cast<float>(all);
}

__global__ void mean_loss(const double* losses, int64_t rows, const double* count, float* loss) {
  double mine = 0;
  for (int64_t row = threadIdx.x; row < rows; row += blockDim.x) mine += losses[row];
  const double sum = sum_block(mine);
  if (threadIdx.x == 0) *loss = static_cast<float>(sum / *count);
}

}  // namespace

void launch_vocabulary_statistics(Stream stream, Format format, LogitRows rows, const void* logits, const Classes& classes,
                                  float* statistics) {
  if (rows.rows == 0) return;
  with_format(format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    start("vocabulary_statistics", vocabulary_statistics<T>, static_cast<unsigned>(rows.rows), row_threads(rows.classes, kMostThreads), stream, static_cast<const T*>(logits), rows, classes, statistics);
  });
}

void launch_vocabulary_gradient(Stream stream, Format format, LogitRows rows, void* logits, const float* logsumexp,
                                const Classes& classes, const float* coefficients) {
  if (rows.rows == 0) return;
  with_format(format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    start("vocabulary_gradient_", vocabulary_gradient<T>, static_cast<unsigned>(rows.rows), row_threads(rows.classes, kMostThreads), stream, static_cast<T*>(logits), rows, logsumexp, classes, coefficients);
  });
}

void launch_cross_entropy_rows(Stream stream, Format format, LogitRows rows, const void* logits, const int64_t* targets,
                               int64_t ignore_index, float* logsumexp, double* losses) {
  if (rows.rows == 0) return;
  with_format(format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    start("cross_entropy", cross_entropy_rows<T>, static_cast<unsigned>(rows.rows), row_threads(rows.classes, kMostThreads), stream, static_cast<const T*>(logits), rows, targets, ignore_index, logsumexp, losses);
  });
}

// `to` is aligned as `logits` is: both begin a tensor, or are the same one.
void launch_cross_entropy_gradient(Stream stream, Format format, LogitRows rows, const void* logits, const float* logsumexp,
                                   const int64_t* targets, int64_t ignore_index, const float* row_weight,
                                   const float* upstream, void* to) {
  if (rows.rows == 0) return;
  with_format(format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    start("cross_entropy", cross_entropy_gradient<T>, static_cast<unsigned>(rows.rows), row_threads(rows.classes, kMostThreads), stream, static_cast<const T*>(logits), rows, logsumexp, targets, ignore_index, row_weight, upstream, static_cast<T*>(to));
  });
}

void launch_count_targets(Stream stream, const int64_t* targets, int64_t rows, int64_t ignore_index, float* row_weight,
                          double* count) {
  start("cross_entropy", count_targets, 1, 1024, stream, targets, rows, ignore_index, row_weight, count);
}

void launch_mean_loss(Stream stream, const double* losses, int64_t rows, const double* count, float* loss) {
  start("cross_entropy", mean_loss, 1, 1024, stream, losses, rows, count, loss);
}

}  // namespace troupe::cuda
