// Where libtorch's libraries have a fixed cost, or half of the registers: oneDNN asks 2.5 to 15 us a product, MKL keeps to AVX2 on AMD. A
// Zen 5 core multiplies a layer of 64 or 128 features at 220 to 250 GFLOP/s here, at 100 to 190 there. Both libraries sum each element of
// such a product in the order of k, fused, so that these tiles have their bits (test/kernels/instruction-sets.test.ts); a product that
// they sum otherwise is theirs. On Intel, and with AVX2 alone, only heads are multiplied here, to spare their copies: MKL is quicker with
// all else.

#include "kernels/cpu/float32_tiles.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm_cpu_dispatch.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/programs/float32_products.h"
#include "kernels/cpu/float32_matmul.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/tile_lanes.h"

#ifdef __has_builtin  // older compilers transpose number by number
#if __has_builtin(__builtin_shufflevector)
#define TROUPE_SHUFFLES
#endif
#endif

namespace troupe {
namespace {

constexpr int64_t kRestRows = 4;

constexpr int64_t kMinSize = 16;                        // of rows and columns, or MKL sums in other orders
constexpr int64_t kMinInner = 4;
constexpr int64_t kMaxTerms = 512;                      // oneDNN begins a second sum there
constexpr int64_t kMaxRowElements = int64_t{1} << 17;   // of a: it is read again for each panel of b
constexpr int64_t kMaxMultiplications = int64_t{1} << 26;  // from here on oneDNN is as fast
constexpr int64_t kAmdInner = 192;                      // of a sum of MKL's on AMD
constexpr int64_t kIntelInner = 384;                    // of a sum of MKL's by AVX-512
constexpr int64_t kTaskMultiplications = int64_t{1} << 23;

struct TileSums {
  float* to;
  int64_t stride;   // of rows
  int64_t columns;  // that are there
  const float* bias;  // null: none
  int64_t bias_stride;
};

// sums [kRows, columns] = bias + a b. Rows of `a` lie side by side if `kAcross`, or else `stride` apart; b [inner, kVectors * kLanes].
template <int kLanes, int kRows, int kVectors, bool kAcross>
struct Float32Tile {
  static TROUPE_INLINE void run(const float* __restrict a, int64_t stride, const float* __restrict b, int64_t inner, int64_t terms, const TileSums* sums) {
    constexpr int kWidth = kVectors * kLanes;
    const float* a_0 = a;
    const float* a_4 = a + 4 * stride;
    const float* a_8 = a + 8 * stride;
    for (int64_t first = 0; first < inner; first += terms) {
      const int64_t count = std::min(terms, inner - first);
      TileLanes<kLanes> tile[kRows][kVectors] = {};
      for (int64_t k = 0; k < count; k++, b += kWidth) {
        TileLanes<kLanes> row[kVectors];
        for (int n = 0; n < kVectors; n++) load_lanes(row[n], b + n * kLanes);
#pragma GCC unroll 16
        for (int m = 0; m < kRows; m++) {
          const float* const rows = m < 4 ? a_0 : m < 8 ? a_4 : a_8;
          const float factor = kAcross ? a_0[m] : rows[m % 4 * stride];
#pragma GCC unroll 2
          for (int n = 0; n < kVectors; n++) add_product(tile[m][n], factor, row[n]);
        }
        a_0 += kAcross ? stride : 1;
        a_4++;
        a_8++;
      }
      // Sums of earlier terms are where they end; those of a row that two tiles have are written twice.
      const float* const before = first > 0 ? sums->to : sums->bias;
      const int64_t before_stride = first > 0 ? sums->stride : sums->bias_stride;
      for (int m = 0; m < kRows; m++) {
        float* const to = sums->to + m * sums->stride;
        const float* const from = before + m * before_stride;
        if (sums->columns == kWidth) {
          for (int n = 0; n < kVectors; n++) {
            TileLanes<kLanes> added = {};
            if (before) load_lanes(added, from + n * kLanes);
            store_lanes(to + n * kLanes, before ? tile[m][n] + added : tile[m][n]);
          }
        } else {
          float all[kWidth];
          for (int n = 0; n < kVectors; n++) store_lanes(all + n * kLanes, tile[m][n]);
          for (int64_t i = 0; i < sums->columns; i++) to[i] = before ? all[i] + from[i] : all[i];
        }
      }
    }
  }
};

// Some columns of b as the tiles read them, [inner, kWidth], zeros behind the last.
template <int kLanes, int kWidth>
struct PackColumns {
  static TROUPE_INLINE void run(const float* b, int64_t inner_stride, int64_t column_stride, int64_t inner, int64_t columns, float* __restrict to) {
    if (columns < kWidth) {
      std::fill(to, to + inner * kWidth, 0.0f);
      for (int64_t i = 0; i < columns; i++) {
        for (int64_t k = 0; k < inner; k++) to[k * kWidth + i] = b[k * inner_stride + i * column_stride];
      }
    } else if (column_stride == 1) {
      for (int64_t k = 0; k < inner; k++) {
        for (int i = 0; i < kWidth; i++) to[k * kWidth + i] = b[k * inner_stride + i];
      }
    } else {
      int64_t k = 0;
#ifdef TROUPE_SHUFFLES
      for (; inner_stride == 1 && k + kLanes <= inner; k += kLanes) {
        for (int i = 0; i < kWidth; i += kLanes) transpose(b + i * column_stride + k, column_stride, to + k * kWidth + i);
      }
#endif
      for (; k < inner; k++) {
        for (int i = 0; i < kWidth; i++) to[k * kWidth + i] = b[k * inner_stride + i * column_stride];
      }
    }
  }

 private:
#ifdef TROUPE_SHUFFLES
  using Lanes = TileLanes<kLanes>;

  // A square of kLanes rows, by halves of growing size.
  static TROUPE_INLINE void transpose(const float* from, int64_t stride, float* __restrict to) {
    Lanes rows[kLanes];
    for (int i = 0; i < kLanes; i++) load_lanes(rows[i], from + i * stride);
    exchange<1>(rows);
    exchange<2>(rows);
    exchange<4>(rows);
    if constexpr (kLanes > 8) exchange<8>(rows);
    for (int i = 0; i < kLanes; i++) store_lanes(to + i * kWidth, rows[i]);
  }

  // Two rows that lie `kSize` apart swap halves of each 2 * kSize numbers: the first gives its later half for the second's earlier one.
  template <int kSize>
  static TROUPE_INLINE void exchange(Lanes (&rows)[kLanes]) {
    for (int i = 0; i < kLanes; i++) {
      if ((i & kSize) == 0) exchange<kSize>(rows[i], rows[i + kSize], std::make_integer_sequence<int, kLanes>());
    }
  }

  template <int kSize, int... kLane>
  static TROUPE_INLINE void exchange(Lanes& first, Lanes& second, std::integer_sequence<int, kLane...>) {
    const Lanes before = first;
    first = __builtin_shufflevector(before, second, (kLane & kSize ? kLanes + kLane - kSize : kLane)...);
    second = __builtin_shufflevector(before, second, (kLane & kSize ? kLanes + kLane : kLane + kSize)...);
  }
#endif
};

struct TiledProduct {
  const float *a, *b;
  int64_t a_row, a_inner, b_inner, b_column;
  int64_t rows, inner, columns, terms;
  const float* bias;
  int64_t bias_row;
  float* to;
  int64_t to_row;
};

template <int kLanes, int kFullRows, int kVectors>
void compute_panel(const TiledProduct& of, int64_t column, int64_t columns) {
  constexpr int kWidth = kVectors * kLanes;
  static thread_local std::vector<float> packed;
  packed.resize(std::max(packed.size(), static_cast<size_t>(of.inner * kWidth)));
  run_best<PackColumns<kLanes, kWidth>>(of.b + column * of.b_column, of.b_inner, of.b_column, of.inner, columns, packed.data());
  const bool across = of.a_inner != 1;
  const auto compute = [&](int64_t row, auto rows) {
    constexpr int kRows = decltype(rows)::value;
    const TileSums sums{of.to + row * of.to_row + column, of.to_row, columns,
                        of.bias == nullptr ? nullptr : of.bias + row * of.bias_row + column, of.bias_row};
    const float* const a = of.a + row * of.a_row;
    if (across) run_best<Float32Tile<kLanes, kRows, kVectors, true>>(a, of.a_inner, packed.data(), of.inner, of.terms, &sums);
    else run_best<Float32Tile<kLanes, kRows, kVectors, false>>(a, of.a_row, packed.data(), of.inner, of.terms, &sums);
  };
  int64_t row = 0;
  for (; row + kFullRows <= of.rows; row += kFullRows) compute(row, std::integral_constant<int, kFullRows>());
  // The last rows together with some before them, which come out the same.
  for (; row < of.rows; row += kRestRows) compute(std::min(row, of.rows - kRestRows), std::integral_constant<int, kRestRows>());
}

// Tiles of kFullRows x 2 kLanes, which are as many sums as stay in registers.
template <int kLanes, int kFullRows>
void compute_columns(const TiledProduct& of, int64_t column, int64_t last) {
  for (; column < last; column += 2 * kLanes) {
    const int64_t columns = std::min<int64_t>(2 * kLanes, last - column);
    if (columns > kLanes) compute_panel<kLanes, kFullRows, 2>(of, column, columns);
    else compute_panel<kLanes, kFullRows, 1>(of, column, columns);
  }
}

// Two registers of numbers.
int64_t panel_columns() { return isa() < Isa::avx512 ? 16 : 32; }

void compute_panels(const TiledProduct& of, int64_t first, int64_t last) {
  const int64_t column = first * panel_columns(), last_column = std::min(of.columns, last * panel_columns());
  if (isa() < Isa::avx512) compute_columns<8, 6>(of, column, last_column);
  else compute_columns<16, 12>(of, column, last_column);
}

int64_t panels_of(const TiledProduct& of) { return (of.columns + panel_columns() - 1) / panel_columns(); }

// Pieces of this many multiplications that are worth a task: some 100 us, half as many with registers half as wide.
int64_t grain_of(int64_t multiplications) {
  const int64_t of_a_task = isa() < Isa::avx512 ? kTaskMultiplications / 2 : kTaskMultiplications;
  return std::max<int64_t>(1, of_a_task / multiplications);
}

bool is_small(const at::Tensor& a, const at::Tensor& b) { return !onednn_is_quicker(a, b); }

// How MKL sums up to twice kIntelInner terms by its kernels for AVX-512.
int64_t terms_of_halves(int64_t inner) { return inner <= kIntelInner ? inner : (inner + 1) / 2; }

// How it sums on AMD.
int64_t terms_of_pieces(int64_t inner) { return inner <= kAmdInner ? inner : std::min(kAmdInner, inner / 2); }

// Whether MKL sums so many terms at once: a setting of its own may choose other kernels, so only a try tells.
bool mkl_sums(int64_t (*terms_of)(int64_t inner)) {
  constexpr int64_t kRows = kMinSize, kInner = 2 * kIntelInner - 1, kColumns = 33;
  const at::Tensor a = at::empty({kRows, kInner}, at::kFloat), b = at::empty({kInner, kColumns}, at::kFloat);
  for (const at::Tensor& each : {a, b}) {
    for (int64_t i = 0; i < each.numel(); i++) each.mutable_data_ptr<float>()[i] = 1.0f / static_cast<float>(i + 1);
  }
  const at::Tensor of_mkl = at::cpu::mm(a, b), of_tiles = at::empty_like(of_mkl);
  const TiledProduct product{a.const_data_ptr<float>(), b.const_data_ptr<float>(), kInner, 1, kColumns, 1, kRows, kInner, kColumns,
                             terms_of(kInner), nullptr, 0, of_tiles.mutable_data_ptr<float>(), kColumns};
  compute_panels(product, 0, panels_of(product));
  return std::memcmp(of_mkl.const_data_ptr(), of_tiles.const_data_ptr(), of_mkl.nbytes()) == 0;
}

bool mkl_sums_halves() {
  static const bool does = mkl_may_use_avx512() && isa() >= Isa::avx512 && mkl_sums(terms_of_halves);
  return does;
}

bool mkl_sums_pieces() {
  static const bool does = mkl_keeps_to_avx2() && mkl_sums(terms_of_pieces);
  return does;
}

// How many terms a sum has before the next one begins, of which the sum before is a term.
int64_t terms_of(int64_t inner, bool is_small) {
  if (mkl_sums_halves()) return terms_of_halves(inner);
  return is_small ? terms_of_pieces(inner) : inner;
}

// Tiles read rows of `a` in one of two ways.
at::Tensor readable(const at::Tensor& a) { return a.stride(-1) == 1 || a.stride(-2) == 1 ? a : a.contiguous(); }

// Whether tiles know the libraries' order of a sum if the product is small, and that oneDNN does not take it otherwise.
bool tiles_know(int64_t rows, int64_t inner, int64_t columns) {
  if (rows < kMinSize || columns < kMinSize || inner < kMinInner || isa() < Isa::avx2) return false;
  if (chooses_float32_library() || mkl_sums_pieces()) return rows * inner <= kMaxRowElements;
  return mkl_sums_halves() && inner <= 2 * kIntelInner;
}

bool tiles_know_both_orders(int64_t rows, int64_t inner, int64_t columns) {
  return !chooses_float32_library() || (inner <= kMaxTerms && rows * inner * columns <= kMaxMultiplications);
}

}  // namespace

bool multiplies_in_tiles(const at::Tensor& a, const at::Tensor& b) {
  // Elsewhere MKL is quicker.
  if (!chooses_float32_library()) return false;
  const int64_t rows = a.size(-2), inner = a.size(-1), columns = b.size(-1);
  return tiles_know(rows, inner, columns) && (is_small(a, b) || tiles_know_both_orders(rows, inner, columns));
}

bool has_known_sums(int64_t rows, int64_t inner, int64_t columns) {
  return tiles_know(rows, inner, columns) && tiles_know_both_orders(rows, inner, columns);
}

void multiply_in_tiles(const at::Tensor& given, const at::Tensor& b, const at::Tensor& given_bias, const at::Tensor& out) {
  const at::Tensor a = readable(given);
  at::Tensor bias = given_bias.defined() ? given_bias.expand(out.sizes()) : given_bias;
  if (bias.defined() && bias.stride(1) != 1) bias = bias.contiguous();
  const TiledProduct all{a.const_data_ptr<float>(), b.const_data_ptr<float>(), a.stride(0), a.stride(1), b.stride(0), b.stride(1),
                         a.size(0), a.size(1), b.size(1), terms_of(a.size(1), is_small(a, b)),
                         bias.defined() ? bias.const_data_ptr<float>() : nullptr, bias.defined() ? bias.stride(0) : 0,
                         out.mutable_data_ptr<float>(), b.size(1)};
  at::parallel_for(0, panels_of(all), grain_of(all.rows * all.inner * panel_columns()),
                   [&](int64_t first, int64_t last) { compute_panels(all, first, last); });
}

at::Tensor multiply_batches_in_tiles(const at::Tensor& given, const at::Tensor& b) {
  const at::Tensor a = readable(given);
  const at::Tensor out = at::empty({a.size(0), a.size(1), b.size(2)}, a.options());
  const auto grid = [](const at::Tensor& batches) {
    return MatrixGrid{const_cast<float*>(batches.const_data_ptr<float>()), batches.stride(0), 0, batches.stride(1), batches.stride(2)};
  };
  multiply_grids_in_tiles(grid(a), grid(b), grid(out), {a.size(0), 1, a.size(1), a.size(2), b.size(2)});
  return out;
}

bool fits_grids(int64_t batches, int64_t rows, int64_t inner, int64_t columns) {
  return tiles_know(rows, inner, columns) && tiles_know(columns, inner, rows) &&
         (batches * rows * inner * columns < least_for_onednn() || tiles_know_both_orders(rows, inner, columns));
}

void multiply_grids_in_tiles(const MatrixGrid& a, const MatrixGrid& b, const MatrixGrid& out, const GridSizes& sizes) {
  const bool small = sizes.outer * sizes.inner * sizes.rows * sizes.terms * sizes.columns < least_for_onednn();
  const TiledProduct one{a.first, b.first, a.row, a.column, b.row, b.column, sizes.rows, sizes.terms, sizes.columns,
                         terms_of(sizes.terms, small), nullptr, 0, out.first, out.row};
  at::parallel_for(0, sizes.outer * sizes.inner, grain_of(one.rows * one.inner * one.columns), [&](int64_t first, int64_t last) {
    for (int64_t g = first; g < last; g++) {
      const int64_t i = g / sizes.inner, j = g % sizes.inner;
      TiledProduct each = one;
      each.a += i * a.outer + j * a.inner;
      each.b += i * b.outer + j * b.inner;
      each.to += i * out.outer + j * out.inner;
      compute_panels(each, 0, panels_of(each));
    }
  });
}

}  // namespace troupe
