// Attention to keys and values in pages: see page_rows.cuh.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/page_rows.cuh"

namespace troupe::cuda {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

// Where a token is, and what it sees. A place that is none is left alone.
struct Place {
  const int64_t* pages;
  int64_t shared;  // see place_in_pages
  int64_t position;
};

__device__ bool has_page(const PageSlabs& slabs, int64_t page) { return page >= 0 && page < slabs.pages * slabs.count; }

__device__ Place place_of(const PagePlaces& places, int64_t token) {
  const int64_t text = places.texts[token], position = places.positions[token];
  const bool has_text = text >= 0 && text < places.num_texts && position >= 0;
  const int64_t* const row = places.table + (has_text ? text : 0) * places.columns;
  const bool known = has_text && row[0] >= 0 && place_in_pages(position, row[0]) < (places.columns - 1) * kPagePositions;
  return {row + 1, row[0], known ? position : -1};
}

// In 32 bits: a division of 64 costs as much as some of the features.
template <class T>
__device__ T* page_of(const PageSlabs& slabs, int64_t page, int64_t group) {
  const auto index = static_cast<uint32_t>(page), pages = static_cast<uint32_t>(slabs.pages);
  return static_cast<T*>(slabs.of[index / pages]) + (index % pages * slabs.groups + group) * slabs.width * kPagePositions;
}

// One feature of one token and group, in the order of the tokens' heads.
template <class T>
struct WritePages {
  PageSlabs keys, values;
  PagePlaces places;
  const T *k, *v;
  PageHeads of_k, of_v;

  template <int N>
  __device__ void run(int64_t index) const {
#pragma unroll
    for (int j = 0; j < N; j++) one(index + j);
  }

 private:
  __device__ void one(int64_t index) const {
    const int64_t width = keys.width, d = index % width, group = index / width % keys.groups, token = index / width / keys.groups;
    const Place place = place_of(places, token);
    if (place.position < 0) return;
    const int64_t to = place_in_pages(place.position, place.shared), page = place.pages[to / kPagePositions], at = to % kPagePositions;
    if (!has_page(keys, page)) return;
    page_of<T>(keys, page, group)[d * kPagePositions + at] = k[group * of_k.of_head + token * of_k.of_token + d];
    page_of<T>(values, page, group)[at * width + d] = v[group * of_v.of_head + token * of_v.of_token + d];
  }
};

template <class T>
__global__ void attend_pages(PageSlabs keys, PageSlabs values, PagePlaces places, const T* q, PageHeads of_q, int64_t heads,
                             PageBias bias, int64_t window, float scale, float* scratch, T* out) {
  const int64_t width = keys.width, readers = heads / keys.groups;
  float* const scores = scratch + blockIdx.x * places.columns * kPagePositions;
  for (int64_t item = blockIdx.x; item < places.tokens * heads; item += gridDim.x) {
    const int64_t token = item / heads, head = item % heads, group = head / readers;
    const Place place = place_of(places, token);
    const int64_t end = place.position + 1, begin = window > 0 ? max(int64_t{0}, end - window) : 0;
    const T* const query = q + head * of_q.of_head + token * of_q.of_token;
    float most = kLowest;
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
      const int64_t from = place_in_pages(i, place.shared), page = place.pages[from / kPagePositions];
      float score =
          has_page(keys, page) ? score_of(query, page_of<T>(keys, page, group) + from % kPagePositions, width, kPagePositions) * scale : kNone;
      if (bias.of != nullptr) score += bias.of[head * bias.distances + min(place.position - i, bias.distances - 1)];
      scores[i] = score;
      most = Max::join(score, most);
    }
    const float share = weigh_scores(scores, begin, end, most);
    for (int64_t d = threadIdx.x; d < width; d += blockDim.x) {
      float mixed = end > begin ? 0.0f : kNone;
      for (int64_t i = begin; i < end;) {
        const int64_t from = place_in_pages(i, place.shared), page = place.pages[from / kPagePositions];
        const int64_t rest = min(end, i + kPagePositions - from % kPagePositions), last = i < place.shared ? min(rest, place.shared) : rest;
        const T* value = page_of<T>(values, has_page(values, page) ? page : 0, group) + from % kPagePositions * width + d;
        for (; i < last; i++, value += width) mixed += scores[i] * load(*value);
      }
      store(out[item * width + d], mixed * share);
    }
    __syncthreads();  // all have read the scores
  }
}

}  // namespace

void launch_write_pages(Stream stream, Format format, const PageSlabs& keys, const PageSlabs& values, const PagePlaces& places,
                        const void* k, PageHeads of_k, const void* v, PageHeads of_v) {
  with_format(format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    launch_each("paged_attention", stream, places.tokens * keys.groups * keys.width, false,
                WritePages<T>{keys, values, places, static_cast<const T*>(k), static_cast<const T*>(v), of_k, of_v});
  });
}

void launch_attend_pages(Stream stream, Format format, const PageSlabs& keys, const PageSlabs& values, const PagePlaces& places,
                         const void* q, PageHeads of_q, int64_t heads, PageBias bias, int64_t window, float scale, int64_t blocks,
                         float* scratch, void* out) {
  if (blocks == 0) return;
  with_format(format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    start("paged_attention", attend_pages<T>, static_cast<unsigned>(blocks), kPageThreads, stream, keys, values, places,
          static_cast<const T*>(q), of_q, heads, bias, window, scale, scratch, static_cast<T*>(out));
  });
}

}  // namespace troupe::cuda
