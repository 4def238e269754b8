// to (+)= from between float formats: see kernels/cpu/add_range.h.
#include "kernels/cuda/elements.cuh"

namespace troupe::cuda {
namespace {

struct AddRange {
  Array to, from;
  bool accumulate;

  template <int N>
  __device__ void run(int64_t i) const {
    float value[N], sum[N] = {};
    read<N>(from, i, value);
    if (accumulate) read<N>(to, i, sum);
#pragma unroll
    for (int j = 0; j < N; j++) sum[j] += value[j];
    write<N>(to, i, sum);
  }
};

struct Pieces {
  Array to;
  Format from;
  bool accumulate;
  Piece of[kMostPieces];
  bool wide[kMostPieces];
};

// blockIdx.y counts the pieces.
__global__ void add_pieces(const __grid_constant__ Pieces pieces) {
  const Piece& piece = pieces.of[blockIdx.y];
  void* const to = static_cast<char*>(pieces.to.data) + piece.begin * (pieces.to.format == Format::float32 ? 4 : 2);
  const AddRange body{{to, pieces.to.format}, {const_cast<void*>(piece.from), pieces.from}, pieces.accumulate};
  run_each(piece.numel, pieces.wide[blockIdx.y], body);
}

}  // namespace

void launch_add_pieces(Stream stream, Array to, Format from, const Piece* pieces, int count, bool accumulate) {
  constexpr int64_t kMaxBlocksOfPiece = 264;
  Pieces all{to, from, accumulate, {}, {}};
  int64_t most = 0;
  for (int i = 0; i < count; i++) {
    const int64_t begin = pieces[i].begin * bytes_of(to.format);
    all.of[i] = pieces[i];
    all.wide[i] = is_wide(static_cast<char*>(to.data) + begin, to.format) && is_wide(pieces[i].from, from);
    most = std::max(most, pieces[i].numel);
  }
  const int64_t a_block = kElementThreads * kWide;
  const int64_t blocks = std::min((most + a_block - 1) / a_block, kMaxBlocksOfPiece);
  if (blocks == 0) return;
  start("collect_gradients_", add_pieces, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(count)), kElementThreads, stream, all);
}

void launch_add_range(Stream stream, Array to, Array from, int64_t numel, bool accumulate) {
  launch_each("add_range", stream, numel, is_wide(to) && is_wide(from), AddRange{to, from, accumulate});
}

}  // namespace troupe::cuda
