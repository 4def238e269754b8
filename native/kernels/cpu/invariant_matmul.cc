// Goto and van de Geijn 2008, https://doi.org/10.1145/1356052.1356053: both operands are packed piece by piece into float32 panels
// that stay in the caches, and tiles of the product are kept in registers. No library is asked, for all of them choose their order of
// sums by the number of rows. Here a tile continues the sums of the piece before it, so pieces and tiles do not show in the bits.
//
// bfloat16 is packed as it is, in pairs, where the processor has vdpbf16ps, which adds the products of two pairs at twice the rate of
// float32. It is a fused sum of the second product, then of the first, to which numbers below float32's normal ones are zeros.
// Other processors make these two steps one by one, with the same bits: pairs are packed as two float32, the second first.

#include "kernels/cpu/invariant_matmul.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <memory>
#include <new>
#include <type_traits>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

#include "core/invariance.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/tile_lanes.h"
#include "kernels/register.h"

namespace troupe {
namespace {

constexpr int64_t kPieceInner = 192;  // of a piece: a panel of it fills half of a first-level cache
constexpr int64_t kBlockRows = 96;  // packed together; a multiple of every tile's rows
constexpr int64_t kTaskRows = 768;  // of a thread's task; a multiple of kBlockRows
constexpr int64_t kTaskColumns = 384;
constexpr int64_t kMinTaskColumns = 64;

template <class Element>
constexpr bool kIsOfPairs = std::is_same_v<Element, c10::BFloat16>;

// sums [kRows, kPanel] += a [inner, kRows]^T b [inner, kPanel]
template <int kLanes, int kRows, int kVectors>
struct ProductTile {
  static constexpr int kPanel = kVectors * kLanes;

  static TROUPE_INLINE void run(const float* a, const float* b, int64_t inner, float* sums, int64_t row_stride) {
    TileLanes<kLanes> tile[kRows][kVectors];
    for (int m = 0; m < kRows; m++) {
      for (int n = 0; n < kVectors; n++) load_lanes(tile[m][n], sums + m * row_stride + n * kLanes);
    }
    for (int64_t k = 0; k < inner; k++, a += kRows, b += kPanel) {
      TileLanes<kLanes> row[kVectors];
      for (int n = 0; n < kVectors; n++) load_lanes(row[n], b + n * kLanes);
#pragma GCC unroll 16
      for (int m = 0; m < kRows; m++) {
#pragma GCC unroll 4
        for (int n = 0; n < kVectors; n++) add_product(tile[m][n], a[m], row[n]);
      }
    }
    for (int m = 0; m < kRows; m++) {
      for (int n = 0; n < kVectors; n++) store_lanes(sums + m * row_stride + n * kLanes, tile[m][n]);
    }
  }
};

// The same of pairs of bfloat16.
#if defined(__x86_64__) && (defined(__clang__) || __GNUC__ >= 10)
template <int kRows, int kVectors>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,prefer-vector-width=512"))) void multiply_pairs(
    const float* a, const float* b, int64_t inner, float* sums, int64_t row_stride) {
  constexpr int kLanes = 16;
  __m512 tile[kRows][kVectors];
  for (int m = 0; m < kRows; m++) {
    for (int n = 0; n < kVectors; n++) tile[m][n] = _mm512_loadu_ps(sums + m * row_stride + n * kLanes);
  }
  for (int64_t k = 0; k < inner; k++, a += kRows, b += kVectors * kLanes) {
    __m512 row[kVectors];
    for (int n = 0; n < kVectors; n++) row[n] = _mm512_loadu_ps(b + n * kLanes);
#pragma GCC unroll 16
    for (int m = 0; m < kRows; m++) {
      const __m512 pair = _mm512_set1_ps(a[m]);
#pragma GCC unroll 4
      for (int n = 0; n < kVectors; n++) tile[m][n] = _mm512_dpbf16_ps(tile[m][n], (__m512bh)pair, (__m512bh)row[n]);
    }
  }
  for (int m = 0; m < kRows; m++) {
    for (int n = 0; n < kVectors; n++) _mm512_storeu_ps(sums + m * row_stride + n * kLanes, tile[m][n]);
  }
}

bool multiplies_pairs() {
  static const bool does = isa() >= Isa::avx512 && __builtin_cpu_supports("avx512bf16");
  return does;
}
#else
template <int kRows, int kVectors>
void multiply_pairs(const float*, const float*, int64_t, float*, int64_t) {}

bool multiplies_pairs() { return false; }
#endif

// Numbers below the normal ones are zeros while this lives, as they are to vdpbf16ps.
class ZeroTiny {
 public:
#if defined(__x86_64__) && defined(__GNUC__)
  ZeroTiny() : before_(_mm_getcsr()) { _mm_setcsr(before_ | _MM_FLUSH_ZERO_ON | kInputsToo); }
  ~ZeroTiny() { _mm_setcsr(before_); }

 private:
  static constexpr unsigned kInputsToo = 0x40;
  unsigned before_;
#else
  ZeroTiny() {}
#endif
};

template <class Element, bool kPairs, int kLanes, int kRows, int kVectors>
void multiply_tile(const float* a, const float* b, int64_t inner, float* sums, int64_t row_stride) {
  if constexpr (kPairs) {
    multiply_pairs<kRows, kVectors>(a, b, inner, sums, row_stride);
  } else if constexpr (kIsOfPairs<Element>) {
    const ZeroTiny tiny;
    run_best<ProductTile<kLanes, kRows, kVectors>>(a, b, inner, sums, row_stride);
  } else {
    run_best<ProductTile<kLanes, kRows, kVectors>>(a, b, inner, sums, row_stride);
  }
}

// A matrix of any strides, [lines, inner]: the rows of a, the columns of b.
template <class Element>
struct OperandLines {
  const Element* data;
  int64_t line_stride, inner_stride;
};

// A line of numbers as it is packed, in 32 bits each. A pair that is not complete has a zero for its second number.
template <class Element, bool kPairs>
struct PackedLine {
  static TROUPE_INLINE int64_t numel(int64_t inner) {
    const int64_t pairs = (inner + 1) / 2;
    return kPairs ? pairs : kIsOfPairs<Element> ? 2 * pairs : inner;
  }
  static TROUPE_INLINE int64_t num_complete(int64_t inner) { return kIsOfPairs<Element> ? numel(inner - inner % 2) : inner; }

  static TROUPE_INLINE float number(const Element* line, int64_t stride, int64_t k) {
    if constexpr (kPairs) {
      return float_of(static_cast<uint32_t>(line[2 * k * stride].x) | static_cast<uint32_t>(line[(2 * k + 1) * stride].x) << 16);
    } else {
      return load(line, (kIsOfPairs<Element> ? k ^ 1 : k) * stride);
    }
  }
  static TROUPE_INLINE float last_number(const Element* last) {
    if constexpr (kPairs) return float_of(last->x);
    else return load(last, 0);
  }
};

// Packs lines side by side: to[panel][k][line of the panel], zeros after the last line.
template <class Element, bool kPairs, int kPanel>
struct PackLines {
  static TROUPE_INLINE void run(OperandLines<Element> of, int64_t num_lines, int64_t inner, float* __restrict to) {
    using Line = PackedLine<Element, kPairs>;
    const int64_t complete = Line::num_complete(inner), numel = Line::numel(inner);
    for (int64_t first = 0; first < num_lines; first += kPanel, to += numel * kPanel) {
      const Element* from = of.data + first * of.line_stride;
      const int64_t count = std::min<int64_t>(kPanel, num_lines - first);
      if (count < kPanel) std::fill(to, to + numel * kPanel, 0.0f);
      if (count == kPanel && of.line_stride == 1) {
        for (int64_t k = 0; k < complete; k++) {
          for (int i = 0; i < kPanel; i++) to[k * kPanel + i] = Line::number(from + i, of.inner_stride, k);
        }
      } else {
        for (int64_t i = 0; i < count; i++) {
          for (int64_t k = 0; k < complete; k++) to[k * kPanel + i] = Line::number(from + i * of.line_stride, of.inner_stride, k);
        }
      }
      if (complete < numel) {
        std::fill(to + complete * kPanel, to + numel * kPanel, 0.0f);
        for (int64_t i = 0; i < count; i++) {
          to[(numel - 1) * kPanel + i] = Line::last_number(from + i * of.line_stride + (inner - 1) * of.inner_stride);
        }
      }
    }
  }
};

template <class Element>
struct RoundSums {
  static TROUPE_INLINE void run(const float* sums, const Element* bias, int64_t bias_stride, Element* to, int64_t count) {
    if (bias == nullptr) {
      for (int64_t i = 0; i < count; i++) store(to, i, sums[i]);
    } else if (bias_stride == 0) {
      for (int64_t i = 0; i < count; i++) store(to, i, sums[i] + load(bias, 0));
    } else {
      for (int64_t i = 0; i < count; i++) store(to, i, sums[i] + load(bias, i * bias_stride));
    }
  }
};

// This thread's panels and sums: allocated once, for they are used at every product.
struct ProductScratch {
  float a[kBlockRows * kPieceInner];
  float b[kTaskColumns * kPieceInner];
  float sums[kTaskRows * kTaskColumns];
};

ProductScratch& product_scratch() {
  static thread_local std::unique_ptr<ProductScratch> own;
  if (!own) own.reset(new ProductScratch);
  return *own;
}

template <class Element>
struct RowProduct {
  OperandLines<Element> a, b;
  int64_t rows, columns, inner;
  const Element* bias;  // null: none
  int64_t bias_row_stride, bias_column_stride;
  Element* to;  // [rows, columns]
};

struct ProductTask {
  int64_t first_row, last_row, first_column, last_column;
};

template <class Element, bool kPairs, int kLanes, int kRows, int kVectors>
void compute_task(const RowProduct<Element>& of, const ProductTask& task) {
  using Tiles = ProductTile<kLanes, kRows, kVectors>;
  static_assert(kBlockRows % kRows == 0 && kTaskColumns % Tiles::kPanel == 0, "blocks are of complete tiles");
  ProductScratch& own = product_scratch();
  const int64_t rows = task.last_row - task.first_row, columns = task.last_column - task.first_column;
  const auto complete = [](int64_t count, int64_t size) { return (count + size - 1) / size * size; };
  const int64_t stride = complete(columns, Tiles::kPanel);
  std::fill(own.sums, own.sums + complete(rows, kRows) * stride, 0.0f);
  for (int64_t k = 0; k < of.inner; k += kPieceInner) {
    const int64_t inner = std::min(kPieceInner, of.inner - k), num_packed = PackedLine<Element, kPairs>::numel(inner);
    const Element* b = of.b.data + task.first_column * of.b.line_stride + k * of.b.inner_stride;
    run_best<PackLines<Element, kPairs, Tiles::kPanel>>(OperandLines<Element>{b, of.b.line_stride, of.b.inner_stride}, columns, inner, own.b);
    for (int64_t block = 0; block < rows; block += kBlockRows) {
      const int64_t block_rows = std::min(kBlockRows, rows - block);
      const Element* a = of.a.data + (task.first_row + block) * of.a.line_stride + k * of.a.inner_stride;
      run_best<PackLines<Element, kPairs, kRows>>(OperandLines<Element>{a, of.a.line_stride, of.a.inner_stride}, block_rows, inner, own.a);
      for (int64_t column = 0; column < columns; column += Tiles::kPanel) {
        for (int64_t row = 0; row < block_rows; row += kRows) {
          multiply_tile<Element, kPairs, kLanes, kRows, kVectors>(own.a + row * num_packed, own.b + column * num_packed, num_packed,
                                                  own.sums + (block + row) * stride + column, stride);
        }
      }
    }
  }
  for (int64_t row = 0; row < rows; row++) {
    const int64_t own_row = task.first_row + row;
    const Element* bias = of.bias == nullptr ? nullptr
                                             : of.bias + own_row * of.bias_row_stride + task.first_column * of.bias_column_stride;
    run_best<RoundSums<Element>>(own.sums + row * stride, bias, of.bias_column_stride,
                             of.to + own_row * of.columns + task.first_column, columns);
  }
}

// Cuts the product into tasks for the threads.
template <class Element>
void compute_tasks(const RowProduct<Element>& of) {
  const int64_t threads = at::get_num_threads(), row_tasks = (of.rows + kTaskRows - 1) / kTaskRows;
  const int64_t wanted = (threads + row_tasks - 1) / row_tasks;  // column tasks, so that each thread has one
  const int64_t share = (of.columns + wanted - 1) / wanted;
  const int64_t task_columns =
      std::clamp((share + kMinTaskColumns - 1) / kMinTaskColumns * kMinTaskColumns, kMinTaskColumns, kTaskColumns);
  const int64_t column_tasks = (of.columns + task_columns - 1) / task_columns;
  at::parallel_for(0, row_tasks * column_tasks, 1, [&](int64_t first, int64_t last) {
    for (int64_t index = first; index < last; index++) {
      const int64_t row = index / column_tasks * kTaskRows, column = index % column_tasks * task_columns;
      const ProductTask task{row, std::min(of.rows, row + kTaskRows), column, std::min(of.columns, column + task_columns)};
      if (isa() < Isa::avx512) {
        compute_task<Element, false, 8, 6, 2>(of, task);
      } else if (kIsOfPairs<Element> && multiplies_pairs()) {
        compute_task<Element, kIsOfPairs<Element>, 16, 12, 2>(of, task);
      } else {
        compute_task<Element, false, 16, 12, 2>(of, task);
      }
    }
  });
}

at::Tensor multiply_rows(const at::Tensor& a, const at::Tensor& b, const at::Tensor& added) {
  const at::Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  with_float_type(a.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    compute_tasks(RowProduct<Element>{{a.data_ptr<Element>(), a.stride(0), a.stride(1)},
                                 {b.data_ptr<Element>(), b.stride(1), b.stride(0)},
                                 a.size(0),
                                 b.size(1),
                                 a.size(1),
                                 added.defined() ? added.data_ptr<Element>() : nullptr,
                                 added.defined() ? added.stride(0) : 0,
                                 added.defined() ? added.stride(1) : 0,
                                 out.data_ptr<Element>()});
  });
  return out;
}

TROUPE_KERNEL(multiply_rows, multiply_rows);

}  // namespace

bool multiplies_invariantly(const at::Tensor& a, const at::Tensor& b, int64_t dim) {
  if (!is_invariant() || a.dim() != dim || b.dim() != dim || a.scalar_type() != b.scalar_type() || a.device() != b.device()) return false;
  if (a.size(-1) != b.size(-2) || (dim == 3 && a.size(0) != b.size(0))) return false;
  return with_float_type(a.scalar_type(), [](auto*) {});
}

at::Tensor multiply_invariantly(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias) {
  if (a.size(0) == 0 || b.size(1) == 0) return at::empty({a.size(0), b.size(1)}, a.options());
  return multiply_rows_kernel(a, b, bias.defined() ? bias.to(a.scalar_type()).expand({a.size(0), b.size(1)}) : bias);
}

at::Tensor multiply_and_add_invariantly(const at::Tensor& bias, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                                        const at::Scalar& alpha) {
  const bool plain = beta.toDouble() == 1.0 && alpha.toDouble() == 1.0 && bias.scalar_type() == a.scalar_type();
  if (plain) return multiply_invariantly(a, b, bias);
  return multiply_invariantly(a, b, {}).mul(alpha).add(bias.mul(beta));
}

at::Tensor multiply_batches_invariantly(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor out = at::empty({a.size(0), a.size(1), b.size(2)}, a.options());
  for (int64_t g = 0; g < a.size(0); g++) out.select(0, g).copy_(multiply_invariantly(a.select(0, g), b.select(0, g), {}));
  return out;
}

}  // namespace troupe
