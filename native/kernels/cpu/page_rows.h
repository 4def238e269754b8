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
  const int64_t* pages;  // of the text
  int64_t group, first, last;  // positions
  const Element* q;            // of the first head
  int64_t of_head, readers;    // between heads
  Element* out;
  float scale;
  float* scratch;      // [width + width + positions, up to complete pages]
  float* logsumexp;    // of the first head's scaled scores; null: not asked for
  int64_t of_logsumexp;  // between heads
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

// A page is no neighbour of the one before it, so the processor does not foresee it.
template <class Element>
TROUPE_INLINE void expect_eight(const Element* from) {
  __builtin_prefetch(from);
}

template <class Element>
struct AttendPages {
  static TROUPE_INLINE void run(const Reading<Element>* reading) {
    const Reading<Element>& of = *reading;
    const int64_t width = of.keys->width, first_page = of.first / kPagePositions, num_pages = (of.last - 1) / kPagePositions + 1;
    float* const q = of.scratch;
    float* const out = q + width;
    float* const scores = out + width;  // from the first position of the first page
    const int64_t begin = of.first % kPagePositions, end = of.last - first_page * kPagePositions;
    for (int64_t head = 0; head < of.readers; head++) {
      for (int64_t d = 0; d < width; d++) q[d] = load(of.q + head * of.of_head, d);
      for (int64_t page = first_page; page < num_pages; page++) {
        const Element* keys = of.keys->page(of.pages[page], of.group);
        const Element* next = page + 1 < num_pages ? of.keys->page(of.pages[page + 1], of.group) : keys;
        score(q, keys, next, width, of.scale, scores + (page - first_page) * kPagePositions);
      }
      const auto read = [&](int64_t i) TROUPE_INLINE_LAMBDA { return scores[i]; };
      const float max = max_of<kKeyLanes>(begin, end, read(begin), read);
      for (int64_t i = begin; i < end; i++) scores[i] = exp_f32(scores[i] - max);
      const float sum = sum_terms<float, kKeyLanes>(begin, end, read);
      const float share = 1.0f / sum;
      if (of.logsumexp) of.logsumexp[head * of.of_logsumexp] = max + log_f32(sum);
      int64_t d = 0;
      for (; d + kValueLanes <= width; d += kValueLanes) mix<kValueLanes / kPagePositions>(of, scores, begin, end, d, out);
      for (; d + kPagePositions <= width; d += kPagePositions) mix<1>(of, scores, begin, end, d, out);
      for (; d < width; d++) out[d] = mixed(of, scores, begin, end, d);
      Element* const y = of.out + head * width;
      for (d = 0; d < width; d++) store(y, d, out[d] * share);
    }
  }

 private:
  static TROUPE_INLINE void score(const float* q, const Element* keys, const Element* next, int64_t width, float scale,
                                  float* to) {
    Eight sums[kFeatureSums] = {};
    int64_t d = 0;
    for (; d + kFeatureSums <= width; d += kFeatureSums) {
      expect_eight(next + d * kPagePositions);
      expect_eight(next + (d + 2) * kPagePositions);
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
  static TROUPE_INLINE void mix(const Reading<Element>& of, const float* weights, int64_t begin, int64_t end, int64_t d,
                                float* out) {
    const int64_t width = of.keys->width, first_page = of.first / kPagePositions;
    Eight sums[N] = {};
    for (int64_t base = 0; base < end; base += kPagePositions) {
      const int64_t page = first_page + base / kPagePositions;
      const Element* values = of.values->page(of.pages[page], of.group) + d;
      const Element* next = base + kPagePositions < end ? of.values->page(of.pages[page + 1], of.group) + d : values;
      const int64_t from = begin > base ? begin - base : 0, to = end - base < kPagePositions ? end - base : kPagePositions;
      for (int64_t i = from; i < to; i++) {
        const float weight = weights[base + i];
#pragma GCC unroll 8
        for (int n = 0; n < N; n++) {
          if (n % 2 == 0) expect_eight(next + i * width + n * kPagePositions);
          sums[n] += weight * load_eight(values + i * width + n * kPagePositions);
        }
      }
    }
    std::memcpy(out + d, sums, sizeof(sums));
  }

  static TROUPE_INLINE float mixed(const Reading<Element>& of, const float* weights, int64_t begin, int64_t end, int64_t d) {
    float sum = 0.0f;
    for (int64_t i = begin; i < end; i++) {
      const Element* values = of.values->page(of.pages[of.first / kPagePositions + i / kPagePositions], of.group);
      sum += weights[i] * load(values, i % kPagePositions * of.keys->width + d);
    }
    return sum;
  }
};

}  // namespace troupe
