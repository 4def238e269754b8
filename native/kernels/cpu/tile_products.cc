// A tile is a product of libtorch's `brgemm`, which reads rows of `a` as they lie and columns of `b` in pairs of numbers along the
// inner dim. 64 columns of `b` are packed so at a time, in scratch that stays in the second-level cache while all rows of `a` pass by.
// Where `a` lies transposed, as in a weight's gradient, it is packed a tile at a time too, and all of `b` before.

#include "core/programs/tile_products.h"

#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "core/torch_version.h"
#include "kernels/cpu/amx_products.h"
#include "kernels/cpu/bfloat16_matmul.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/product_ends.h"
#include "kernels/cpu/tile_pairs.h"

namespace troupe {
namespace {

using Narrow = at::BFloat16;

constexpr int64_t kTileColumns = 64;
constexpr int64_t kTileRows = 64;
constexpr int64_t kMaxInner = 4096;     // of one sum within a tile: more are added piece by piece
constexpr int64_t kMaxTogether = 16;    // times 64 columns, whose sums wait in between
constexpr int64_t kChunkRows = 1024;    // for which 64 columns are packed once
constexpr int64_t kLeastMultiplied = int64_t{1} << 20;

thread_local bool wants_tiles = false;

// tile[row] += a[row] b for one place of the inner dim, the last of an odd number.
struct AddLast {
  static TROUPE_INLINE void run(float* __restrict tile, const Narrow* a, int64_t a_stride, const Narrow* b, int64_t b_stride,
                                int64_t rows, int64_t columns) {
    float last[kTileColumns] = {};
    for (int64_t i = 0; i < columns; i++) last[i] = load(b, i * b_stride);
    for (int64_t row = 0; row < rows; row++) {
      const float one = load(a, row * a_stride);
      for (int64_t i = 0; i < kTileColumns; i++) tile[row * kTileColumns + i] += one * last[i];
    }
  }
};

// A matrix with one dim without gaps.
struct DenseMatrix {
  const Narrow* data;
  int64_t stride;    // of the other dim
  bool transposed;   // the first dim is the one without gaps

  explicit DenseMatrix(const at::Tensor& matrix)
      : data(matrix.const_data_ptr<Narrow>()),
        stride(matrix.stride(1) == 1 ? matrix.stride(0) : matrix.stride(1)),
        transposed(matrix.stride(1) != 1) {}

  const Narrow* at(int64_t row, int64_t column) const { return data + (transposed ? column * stride + row : row * stride + column); }
};

const uint16_t* bits(const Narrow* numbers) { return reinterpret_cast<const uint16_t*>(numbers); }

class TileProduct {
 public:
  // As `multiply_tiles`.
  TileProduct(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out, const TileEpilogue& epilogue)
      : a_(a),
        b_(b),
        rows_(a.size(0)),
        inner_(a.size(1)),
        columns_(b.size(1)),
        ends_(out, rows_, columns_, kTileRows, epilogue),
        end_row_(ends_.row_end()) {}

  void run() {
    if (!a_.transposed) run_in_place();
    else if (rows_ <= columns_) run_on_packed_rows();
    else run_on_packed_columns();
    ends_.add_columns();
  }

 private:
  int64_t num_panels() const { return (columns_ + kTileColumns - 1) / kTileColumns; }
  int64_t num_row_tiles() const { return (rows_ + kTileRows - 1) / kTileRows; }
  int64_t columns_at(int64_t panel) const { return std::min(kTileColumns, columns_ - panel * kTileColumns); }

  // Numbers of b from [k, panel] to the right and below, in pairs.
  void pair(int64_t k, int64_t count, int64_t panel, uint32_t* to) const {
    const uint16_t* const from = bits(b_.at(k, panel * kTileColumns));
    if (b_.transposed) run_best<PairColumns>(from, b_.stride, count, columns_at(panel), kTileColumns, to);
    else run_best<PairRows>(from, b_.stride, count, columns_at(panel), kTileColumns, to);
  }

  // Prefetches a share of what `pair` will read next: its lines lie apart, where the processor's own prefetcher finds none.
  void prefetch(int64_t k, int64_t count, int64_t panel, int64_t share, int64_t num_shares) const {
    const int64_t outer = b_.transposed ? columns_at(panel) : count, inner = b_.transposed ? count : columns_at(panel);
    const Narrow* const from = b_.at(k, panel * kTileColumns);
    for (int64_t i = share * outer / num_shares; i < (share + 1) * outer / num_shares; i++) {
      prefetch_row(from + i * b_.stride, inner);
    }
  }

  // The same of rows of a that lies transposed, a share for each panel.
  void prefetch_rows(int64_t row, int64_t panel) const {
    for (int64_t k = panel * inner_ / num_panels(); k < (panel + 1) * inner_ / num_panels(); k++) {
      __builtin_prefetch(a_.at(row, k), 0, 2);
      __builtin_prefetch(a_.at(std::min(rows_, row + kTileRows) - 1, k), 0, 2);
    }
  }

  // Where a tile's results go, and what they are made with.
  void prefetch_ends(int64_t row, int64_t panel) const {
    const BlockEnds ends = ends_.of({}, row, panel * kTileColumns);
    for (int64_t i = 0; i < ends.rows; i++) {
      if (ends.added) prefetch_row(ends.added + i * columns_, columns_at(panel));
      for (const Narrow* const other : std::initializer_list<const Narrow*>{ends.out, ends.product, ends.activated, ends.residual}) {
        if (other) prefetch_row(other + i * columns_, columns_at(panel));
      }
    }
  }

  template <class T>
  static void prefetch_row(const T* from, int64_t numel) {
    constexpr int64_t kLine = 64 / sizeof(T);
    for (int64_t i = 0; i < numel; i += kLine) __builtin_prefetch(from + i, 0, 2);
  }

  static void multiply(int64_t rows, int64_t inner, const Narrow* a, int64_t stride, const uint32_t* pairs, float* tile, bool add) {
    at::native::cpublas::brgemm(rows, kTileColumns, inner, stride, kTileColumns, kTileColumns, add, a,
                                reinterpret_cast<const Narrow*>(pairs), tile, true);
  }

  void end(const float* tile, int64_t row, int64_t panel) const {
    for (int64_t i = 0; i < columns_at(panel); i += kRounded) {
      const BlockEnds ends = ends_.of({tile + i, kTileColumns, 0, kHalfWidth}, row, panel * kTileColumns + i);
      for (int64_t each = 0; each < ends.rows; each++) end_row_(&ends, each);
    }
  }

  // Rows of a are read where they lie. A piece of work is 64 columns of up to kChunkRows rows.
  void run_in_place() const {
    const int64_t num_chunks = (rows_ + kChunkRows - 1) / kChunkRows, num_works = num_panels() * num_chunks;
    const int64_t even = inner_ - inner_ % 2, piece = std::min(even, kMaxInner);
    // A long inner dim is gone through once for many columns: a is then read once, and sums wait in the cache.
    const int64_t together = even > piece ? std::min((num_works + at::get_num_threads() - 1) / at::get_num_threads(), kMaxTogether) : 1;
    at::parallel_for(0, (num_works + together - 1) / together, 1, [&](int64_t first, int64_t last) {
      uint32_t* const pairs = scratch<uint32_t>(static_cast<size_t>(piece / 2 * kTileColumns));
      const int64_t tiles_numel = std::min(kChunkRows, rows_ + kTileRows) * kTileColumns;
      float* const tiles = scratch<float>(static_cast<size_t>(together * tiles_numel));
      for (int64_t group = first * together; group < std::min(num_works, last * together); group += together) {
        const int64_t end_work = std::min(num_works, group + together);
        for (int64_t k = 0; k < even; k += piece) {
          for (int64_t work = group; work < end_work; work++) {
            const int64_t next = work + 1 < end_work || k + piece >= even ? work + 1 : group;
            const Share next_share{next == group ? k + piece : (next == end_work ? 0 : k), next / num_chunks};
            add_piece(work, num_chunks, k, std::min(piece, even - k), next_share, pairs, tiles + (work - group) * tiles_numel);
          }
        }
      }
      at::native::cpublas::brgemm_release();
    });
  }

  struct Share {
    int64_t k, panel;
  };

  // Multiplies a piece of the inner dim for the rows and columns of a work; ends its tiles behind the last piece.
  void add_piece(int64_t work, int64_t num_chunks, int64_t k, int64_t count, Share next, uint32_t* pairs, float* tiles) const {
    const int64_t even = inner_ - inner_ % 2, panel = work / num_chunks;
    const int64_t begin = work % num_chunks * kChunkRows, end_row = std::min(rows_, begin + kChunkRows);
    const int64_t num_tiles = (end_row - begin + kTileRows - 1) / kTileRows;
    const bool is_last = k + count == even, prefetches = next.panel < num_panels() && next.k < even && (next.panel != panel || next.k != k);
    pair(k, count, panel, pairs);
    for (int64_t row = begin; row < end_row; row += kTileRows) {
      float* const tile = tiles + (even > count ? row - begin : 0) * kTileColumns;
      const int64_t rows = std::min(kTileRows, rows_ - row);
      if (is_last) prefetch_ends(row, panel);
      multiply(rows, count, a_.at(row, k), a_.stride, pairs, tile, k > 0);
      if (prefetches) prefetch(next.k, std::min(count, even - next.k), next.panel, (row - begin) / kTileRows, num_tiles);
      if (!is_last) continue;
      if (even < inner_) {
        run_best<AddLast>(tile, a_.at(row, even), a_.stride, b_.at(even, panel * kTileColumns), b_.transposed ? b_.stride : 1, rows,
                          columns_at(panel));
      }
      end(tile, row, panel);
    }
  }

  // All of a is packed first.
  void run_on_packed_rows() {
    const int64_t even = inner_ + inner_ % 2;
    const at::Tensor packed = at::empty({rows_, even}, at::TensorOptions(at::kBFloat16));
    auto* const to = reinterpret_cast<uint16_t*>(packed.mutable_data_ptr<Narrow>());
    at::parallel_for(0, num_row_tiles(), 1, [&](int64_t first, int64_t last) {
      for (int64_t row = first * kTileRows; row < std::min(rows_, last * kTileRows); row += kTileRows) {
        run_best<PackTransposedRows>(bits(a_.at(row, 0)), a_.stride, inner_, std::min(kTileRows, rows_ - row), even, to + row * even);
      }
    });
    a_ = DenseMatrix(packed);
    run_in_place();
  }

  // All of b is packed first, then 64 rows of a at a time.
  void run_on_packed_columns() const {
    const int64_t even = inner_ + inner_ % 2, panel_words = even / 2 * kTileColumns;
    const at::Tensor packed = at::empty({num_panels() * panel_words}, at::TensorOptions(at::kInt));
    auto* const pairs = reinterpret_cast<uint32_t*>(packed.mutable_data_ptr<int32_t>());
    at::parallel_for(0, num_panels(), 1, [&](int64_t first, int64_t last) {
      for (int64_t panel = first; panel < last; panel++) pair(0, inner_, panel, pairs + panel * panel_words);
    });
    at::parallel_for(0, num_row_tiles(), 1, [&](int64_t first, int64_t last) {
      auto* const own = scratch<uint16_t>(static_cast<size_t>(kTileRows * even));
      float* const tile = scratch<float>(static_cast<size_t>(kTileRows * kTileColumns));
      for (int64_t row = first * kTileRows; row < std::min(rows_, last * kTileRows); row += kTileRows) {
        const int64_t rows = std::min(kTileRows, rows_ - row);
        run_best<PackTransposedRows>(bits(a_.at(row, 0)), a_.stride, inner_, rows, even, own);
        for (int64_t panel = 0; panel < num_panels(); panel++) {
          if (row + kTileRows < rows_) prefetch_rows(row + kTileRows, panel);
          prefetch_ends(row, panel);
          for (int64_t k = 0; k < even; k += kMaxInner) {
            multiply(rows, std::min(kMaxInner, even - k), reinterpret_cast<const Narrow*>(own) + k, even,
                     pairs + panel * panel_words + k / 2 * kTileColumns, tile, k > 0);
          }
          end(tile, row, panel);
        }
      }
      at::native::cpublas::brgemm_release();
    });
  }

  DenseMatrix a_;
  const DenseMatrix b_;
  const int64_t rows_, inner_, columns_;
  const ProductEnds ends_;
  void (*const end_row_)(const void* block, int64_t row);
};

bool has_dense_dim(const at::Tensor& matrix) {
  return matrix.dim() == 2 && matrix.is_cpu() && matrix.scalar_type() == at::kBFloat16 && (matrix.stride(0) == 1 || matrix.stride(1) == 1);
}

}  // namespace

bool has_tile_products() {
#if defined(__x86_64__) && TROUPE_TORCH_AT_LEAST(2, 13)
  return isa() >= Isa::avx512 && !multiplies_bfloat16_in_panels();
#else
  return false;
#endif
}

bool tiles_are_quickest() { return has_tile_products() && isa() == Isa::amx; }

bool gains_by_tiles(int64_t rows, int64_t inner, int64_t columns) {
  return rows >= 16 && inner >= 32 && columns >= 32 && rows * inner * columns >= kLeastMultiplied;
}

bool wants_tile_products() { return wants_tiles; }

bool set_tile_products(bool wanted) { return std::exchange(wants_tiles, wanted && has_tile_products()); }

bool has_tiles_for(const at::Tensor& a, const at::Tensor& b) {
  return has_tile_products() && has_dense_dim(a) && has_dense_dim(b) && a.size(1) == b.size(0) && gains_by_tiles(a.size(0), a.size(1), b.size(1));
}

bool multiplies_tiles(const at::Tensor& a, const at::Tensor& b) { return wants_tiles && has_tiles_for(a, b); }

void multiply_tiles(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out, const TileEpilogue& epilogue) {
#if TROUPE_HAS_AMX
  if (isa() == Isa::amx) return multiply_by_amx(a, b, out, epilogue);
#endif
  TileProduct(a, b, out, epilogue).run();
}

}  // namespace troupe
