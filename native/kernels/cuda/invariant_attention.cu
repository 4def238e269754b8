// Attention whose queries do not depend on each other: see kernels/cpu/invariant_attention.cc, whose bits it gives, and those of pages.
// Keys and values stay where they are.
#include "kernels/cuda/page_rows.cuh"

namespace troupe::cuda {
namespace {

template <class T>
__device__ const T* row_of(const HeadRows& of, int64_t batch, int64_t head) {
  return static_cast<const T*>(of.data) + batch * of.of_batch + head * of.of_head;
}

// The keys of a row of the batch that are not hidden, counted from the first; `before` is null where none is hidden.
struct SeenKeys {
  const int64_t* before;

  __device__ bool has(int64_t key) const { return before == nullptr || before[key] != before[key + 1]; }
  __device__ int64_t place(int64_t key) const { return before == nullptr ? key : before[key]; }
};

template <class T>
__global__ void attend_rows(AttentionShape shape, HeadRows q, HeadRows k, HeadRows v, Sight sight, float* scratch, T* out) {
  const int64_t readers = shape.heads / shape.groups, width = shape.width;
  float* const scores = scratch + blockIdx.x * shape.keys;
  for (int64_t item = blockIdx.x; item < shape.batches * shape.rows * shape.heads; item += gridDim.x) {
    const int64_t head = item % shape.heads, row = item / shape.heads % shape.rows, batch = item / shape.heads / shape.rows;
    const T* const query = row_of<T>(q, batch, head) + row * q.of_row;
    const T* const keys = row_of<T>(k, batch, head / readers);
    const T* const values = row_of<T>(v, batch, head / readers);
    const float* const biases =
        sight.bias.data == nullptr ? nullptr : row_of<float>(sight.bias, batch, head) + row * sight.bias.of_row;
    const SeenKeys seen{sight.before == nullptr ? nullptr : sight.before + batch * sight.of_batch};
    const int64_t own = row + shape.keys - shape.rows;
    const int64_t end = sight.causal ? min(max(own + 1, int64_t{0}), shape.keys) : shape.keys;
    const int64_t begin = sight.window == 0 ? 0 : min(max(own - sight.window + 1, int64_t{0}), end);
    const int64_t first = seen.place(begin), count = seen.place(end) - first;
    float share = 1.0f / static_cast<float>(shape.keys);
    if (count > 0) {
      float most = kLowest;
      for (int64_t key = begin + threadIdx.x; key < end; key += blockDim.x) {
        if (!seen.has(key)) continue;
        float score = score_of(query, keys + key * k.of_row, width, 1) * sight.scale;
        if (biases != nullptr) score += biases[key];
        scores[seen.place(key) - first] = score;
        most = Max::join(score, most);
      }
      share = weigh_scores(scores, 0, count, most);
    }
    for (int64_t d = threadIdx.x; d < width; d += blockDim.x) {
      float mixed = 0.0f;
      if (count > 0) {
        for (int64_t key = begin; key < end; key++) {
          if (seen.has(key)) mixed += scores[seen.place(key) - first] * load(values[key * v.of_row + d]);
        }
        mixed *= share;
      } else {
        // A query that sees nothing gets the mean of all.
        for (int64_t key = 0; key < shape.keys; key++) mixed += load(values[key * v.of_row + d]);
        mixed /= static_cast<float>(shape.keys);
      }
      store(out[item * width + d], mixed);
    }
    __syncthreads();  // all have read the scores
  }
}

}  // namespace

void launch_attend_rows(Stream stream, Format format, const AttentionShape& shape, HeadRows q, HeadRows k, HeadRows v, const Sight& sight,
                        int64_t blocks, float* scratch, void* out) {
  if (blocks == 0) return;
  with_format(format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    start("attention", attend_rows<T>, static_cast<unsigned>(blocks), kPageThreads, stream, shape, q, k, v, sight, scratch,
          static_cast<T*>(out));
  });
}

}  // namespace troupe::cuda
