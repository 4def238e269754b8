// Attention of one token to keys and values that lie in pages of eight positions: what texts under way and invariant forwards share.
// The sums have one order, which depends on the number of keys that are seen alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/cpu/elementary.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/page_layout.h"

namespace troupe {

constexpr int kValueLanes = 64;  // features that are added up together

// The pages of an attention, of keys or of values.
template <class Element>
struct Slabs {
  std::vector<Element*> slabs;
  int64_t pages;  // of a slab
  int64_t groups, width;

  explicit Slabs(at::TensorList tensors, int64_t width)
      : pages(tensors[0].size(0)), groups(tensors[0].size(1)), width(width) {
    for (const at::Tensor& tensor : tensors) slabs.push_back(tensor.data_ptr<Element>());
  }

  TROUPE_INLINE Element* page(int64_t index, int64_t group) const {
    return slabs[static_cast<size_t>(index / pages)] + (index % pages * groups + group) * width * kPagePositions;
  }
};

// One token's heads that read one group.
template <class Element>
struct Reading {
  const Slabs<Element>*keys, *values;
  const int64_t* pages;        // of the text
  int64_t shared;              // see place_in_pages
  int64_t group, first, last;  // positions
  const Element* q;            // of the first head
  int64_t of_head, readers;    // between heads
  Element* out;
  float scale;
  float* scratch;      // [width + width + positions, up to complete pages]
  float* logsumexp;    // of the first head's scaled scores; null: not asked for
  int64_t of_logsumexp;  // between heads
  const float* bias = nullptr;  // of the first head, by how far a key lies before the last; null: none
  int64_t distances = 0;        // of a head: the last stands for all beyond
};

// Eight numbers side by side. The compiler, left to itself, vectorises the loops around them.
using Eight = float __attribute__((vector_size(4 * kPagePositions)));

template <class Element>
TROUPE_INLINE Eight load_eight(const Element* from) {
  float numbers[kPagePositions];
  for (int i = 0; i < kPagePositions; i++) numbers[i] = load(from, i);
  Eight eight;
  std::memcpy(&eight, numbers, sizeof(eight));
  return eight;
}

// Pages do not lie side by side, so the processor's own prefetcher misses the next one.
template <class Element>
TROUPE_INLINE void prefetch_eight(const Element* from) {
  __builtin_prefetch(from);
}

template <class Element>
struct AttendPages {
  static TROUPE_INLINE void run(const Reading<Element>* reading) {
    const Reading<Element>& of = *reading;
    const int64_t width = of.keys->width, first_place = place_in_pages(of.first, of.shared);
    const int64_t first_page = first_place / kPagePositions, num_pages = place_in_pages(of.last - 1, of.shared) / kPagePositions + 1;
    float* const q = of.scratch;
    float* const out = q + width;
    float* const scores = out + width;  // from the first position of the first page
    const int64_t begin = first_place % kPagePositions, end = of.last - of.first + begin;
    for (int64_t head = 0; head < of.readers; head++) {
      for (int64_t d = 0; d < width; d++) q[d] = load(of.q + head * of.of_head, d);
      float* to = scores;
      for (int64_t page = first_page; page < num_pages; to += positions_of(of, page), page++) {
        const Element* keys = of.keys->page(of.pages[page], of.group);
        const Element* next = page + 1 < num_pages ? of.keys->page(of.pages[page + 1], of.group) : keys;
        score(q, keys, next, width, of.scale, to);
      }
      if (of.bias) {
        const float* const bias = of.bias + head * of.distances;
        for (int64_t i = begin; i < end; i++) scores[i] += bias[std::min(end - 1 - i, of.distances - 1)];
      }
      const auto read = [&](int64_t i) TROUPE_INLINE_LAMBDA { return scores[i]; };
      const float max = max_of<kKeyLanes>(begin, end, read(begin), read);
      for (int64_t i = begin; i < end; i++) scores[i] = exp_f32(scores[i] - max);
      const float sum = sum_terms<float, kKeyLanes>(begin, end, read);
      const float share = 1.0f / sum;
      if (of.logsumexp) of.logsumexp[head * of.of_logsumexp] = max + log_f32(sum);
      int64_t d = 0;
      for (; d + kValueLanes <= width; d += kValueLanes) mix<kValueLanes / kPagePositions>(of, scores, first_page, begin, end, d, out);
      for (; d + kPagePositions <= width; d += kPagePositions) mix<1>(of, scores, first_page, begin, end, d, out);
      for (; d < width; d++) out[d] = mixed(of, scores + begin, d);
      Element* const y = of.out + head * width;
      for (d = 0; d < width; d++) store(y, d, out[d] * share);
    }
  }

 private:
  static TROUPE_INLINE int64_t positions_of(const Reading<Element>& of, int64_t page) {
    const int64_t left = of.shared - page * kPagePositions;
    return left > 0 && left < kPagePositions ? left : kPagePositions;
  }

  // Where fewer than eight are of the page, the next one's scores are written over the rest.
  static TROUPE_INLINE void score(const float* q, const Element* keys, const Element* next, int64_t width, float scale,
                                  float* to) {
    Eight sums[kFeatureSums] = {};
    int64_t d = 0;
    for (; d + kFeatureSums <= width; d += kFeatureSums) {
      prefetch_eight(next + d * kPagePositions);
      prefetch_eight(next + (d + 2) * kPagePositions);
      sums[0] += q[d] * load_eight(keys + d * kPagePositions);
      sums[1] += q[d + 1] * load_eight(keys + (d + 1) * kPagePositions);
      sums[2] += q[d + 2] * load_eight(keys + (d + 2) * kPagePositions);
      sums[3] += q[d + 3] * load_eight(keys + (d + 3) * kPagePositions);
    }
    for (int sum = 0; d < width; d++, sum++) sums[sum] += q[d] * load_eight(keys + d * kPagePositions);
    const Eight scores = ((sums[0] + sums[1]) + (sums[2] + sums[3])) * scale;
    std::memcpy(to, &scores, sizeof(scores));
  }

  // Writes the weighted sums of features d to d + 8 N - 1, in the order of positions.
  template <int N>
  static TROUPE_INLINE void mix(const Reading<Element>& of, const float* weights, int64_t page, int64_t begin, int64_t end, int64_t d,
                                float* out) {
    const int64_t width = of.keys->width;
    Eight sums[N] = {};
    for (int64_t base = 0, count; base < end; base += count, page++) {
      count = positions_of(of, page);
      const Element* values = of.values->page(of.pages[page], of.group) + d;
      const Element* next = base + count < end ? of.values->page(of.pages[page + 1], of.group) + d : values;
      const int64_t from = begin > base ? begin - base : 0, to = end - base < count ? end - base : count;
      for (int64_t i = from; i < to; i++) {
        const float weight = weights[base + i];
#pragma GCC unroll 8
        for (int n = 0; n < N; n++) {
          if (n % 2 == 0) prefetch_eight(next + i * width + n * kPagePositions);
          sums[n] += weight * load_eight(values + i * width + n * kPagePositions);
        }
      }
    }
    std::memcpy(out + d, sums, sizeof(sums));
  }

  static TROUPE_INLINE float mixed(const Reading<Element>& of, const float* weights, int64_t d) {
    float sum = 0.0f;
    for (int64_t i = of.first; i < of.last; i++) {
      const int64_t place = place_in_pages(i, of.shared);
      const Element* values = of.values->page(of.pages[place / kPagePositions], of.group);
      sum += weights[i - of.first] * load(values, place % kPagePositions * of.keys->width + d);
    }
    return sum;
  }
};

}  // namespace troupe
