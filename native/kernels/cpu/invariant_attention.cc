// Keys and values that may be seen are laid out in pages, row after row of the batch, and each query reads them as it does those of
// a text under way.

#include "kernels/cpu/invariant_attention.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <optional>
#include <type_traits>
#include <vector>

#include "kernels/cpu/attention_rows.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/page_rows.h"

namespace troupe {
namespace {

// The keys that a row of the batch has.
struct SeenKeys {
  std::vector<int64_t> keys;    // in order
  std::vector<int64_t> before;  // [S + 1]: of them, how many come before each key
};

SeenKeys seen_keys(const at::Tensor& mask, int64_t batch, int64_t num_keys) {
  const bool* sees = mask.defined() ? mask.data_ptr<bool>() + (mask.size(0) == 1 ? 0 : batch * mask.stride(0)) : nullptr;
  SeenKeys seen{{}, {0}};
  for (int64_t key = 0; key < num_keys; key++) {
    if (sees == nullptr || sees[key]) seen.keys.push_back(key);
    seen.before.push_back(static_cast<int64_t>(seen.keys.size()));
  }
  return seen;
}

template <class Element>
struct Heads {
  const Element* data;
  int64_t of_batch, of_head, of_row;

  explicit Heads(const at::Tensor& x) : data(x.data_ptr<Element>()), of_batch(x.stride(0)), of_head(x.stride(1)), of_row(x.stride(2)) {}

  const Element* at(int64_t batch, int64_t head, int64_t row) const { return data + batch * of_batch + head * of_head + row * of_row; }
};

template <class Element>
struct Paged {
  at::Tensor keys_BPGDX, values_BPGXD;  // X: the positions of a page
  std::vector<Slabs<Element>> keys, values;
};

template <class Element>
Paged<Element> lay_in_pages(const at::Tensor& k, const at::Tensor& v, const std::vector<SeenKeys>& seen) {
  const int64_t batches = k.size(0), groups = k.size(1), width = k.size(3);
  const int64_t pages = std::max<int64_t>(1, (k.size(2) + kPagePositions - 1) / kPagePositions);
  Paged<Element> paged{at::empty({batches, pages, groups, width, kPagePositions}, k.options()),
                       at::empty({batches, pages, groups, kPagePositions, width}, k.options()),
                       {},
                       {}};
  for (int64_t batch = 0; batch < batches; batch++) {
    paged.keys.emplace_back(paged.keys_BPGDX.select(0, batch), width);
    paged.values.emplace_back(paged.values_BPGXD.select(0, batch), width);
  }
  const Heads<Element> from_k(k), from_v(v);
  at::parallel_for(0, batches * groups, grain_rows(2 * k.size(2) * width), [&](int64_t first, int64_t last) {
    for (int64_t item = first; item < last; item++) {
      const int64_t batch = item / groups, group = item % groups;
      const std::vector<int64_t>& keys = seen[static_cast<size_t>(batch)].keys;
      for (size_t place = 0; place < keys.size(); place++) {
        const auto position = static_cast<int64_t>(place), page = position / kPagePositions, at = position % kPagePositions;
        const Element *key = from_k.at(batch, group, keys[place]), *value = from_v.at(batch, group, keys[place]);
        Element* const to_key = paged.keys[static_cast<size_t>(batch)].page(page, group) + at;
        for (int64_t d = 0; d < width; d++) to_key[d * kPagePositions] = key[d];
        std::copy(value, value + width, paged.values[static_cast<size_t>(batch)].page(page, group) + at * width);
      }
    }
  });
  return paged;
}

template <class Element>
void write_mean(const Heads<Element>& values, int64_t batch, int64_t group, int64_t num_keys, int64_t width, Element* to) {
  for (int64_t d = 0; d < width; d++) {
    float sum = 0.0f;
    for (int64_t key = 0; key < num_keys; key++) sum += load(values.at(batch, group, key), d);
    store(to, d, sum / static_cast<float>(num_keys));
  }
}

// Biases of the keys from `first` to `last`, the last of them first, as where texts are written.
void lay_by_distance(const float* of_keys, const std::vector<int64_t>& keys, int64_t first, int64_t last, float* to) {
  for (int64_t key = last; key-- > first;) *to++ = of_keys[keys[static_cast<size_t>(key)]];
}

template <class Element>
void attend_queries(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const std::vector<SeenKeys>& seen,
                    const at::Tensor& bias, bool causal, int64_t window, float scale, const Attended& result) {
  const int64_t batches = q.size(0), heads = q.size(1), rows = q.size(2), width = q.size(3), groups = k.size(1), num_keys = k.size(2);
  const int64_t readers = heads / groups;
  const Paged<Element> paged = lay_in_pages<Element>(k, v, seen);
  const int64_t num_pages = paged.keys_BPGDX.size(1);
  std::vector<int64_t> pages(static_cast<size_t>(num_pages));
  for (size_t page = 0; page < pages.size(); page++) pages[page] = static_cast<int64_t>(page);
  const Heads<Element> from(q), values(v);
  auto* to = result.out_BHTD.template data_ptr<Element>();
  auto* logsumexps = result.logsumexp_BHT1.template data_ptr<float>();
  std::optional<Heads<float>> biases;
  if (bias.defined()) biases.emplace(bias.expand({batches, heads, rows, num_keys}));
  const int64_t work = readers * width * std::max<int64_t>(1, num_keys);
  at::parallel_for(0, batches * groups * rows, grain_rows(work), [&](int64_t first, int64_t last) {
    std::vector<float> scratch(static_cast<size_t>(2 * width + num_pages * kPagePositions));
    std::vector<float> by_distance(static_cast<size_t>(biases ? readers * num_keys : 0));
    for (int64_t item = first; item < last; item++) {
      // Causal rows grow: threads, which take halves, have rows of all lengths each.
      const int64_t row = item % rows, group = item / rows % groups, batch = item / rows / groups;
      const auto index = static_cast<size_t>(batch);
      const int64_t own = row + num_keys - rows;
      const int64_t end = causal ? std::clamp<int64_t>(own + 1, 0, num_keys) : num_keys;
      const int64_t begin = window == 0 ? 0 : std::clamp<int64_t>(own - window + 1, 0, end);
      const int64_t first_key = seen[index].before[static_cast<size_t>(begin)], last_key = seen[index].before[static_cast<size_t>(end)];
      Element* const out = to + ((batch * rows + row) * heads + group * readers) * width;
      float* const logsumexp = logsumexps + (batch * heads + group * readers) * rows + row;
      if (first_key == last_key) {
        for (int64_t head = 0; head < readers; head++) {
          write_mean(values, batch, group, num_keys, width, out + head * width);
          logsumexp[head * rows] = 0.0f;
        }
        continue;
      }
      if (biases) {
        for (int64_t head = 0; head < readers; head++)
          lay_by_distance(biases->at(batch, group * readers + head, row), seen[index].keys, first_key, last_key,
                          by_distance.data() + head * (last_key - first_key));
      }
      const Reading<Element> reading{&paged.keys[index],
                                     &paged.values[index],
                                     pages.data(),
                                     0,
                                     group,
                                     first_key,
                                     last_key,
                                     from.at(batch, group * readers, row),
                                     from.of_head,
                                     readers,
                                     out,
                                     scale,
                                     scratch.data(),
                                     logsumexp,
                                     rows,
                                     biases ? by_distance.data() : nullptr,
                                     last_key - first_key};
      run_best<AttendPages<Element>>(&reading);
    }
  });
}

}  // namespace

void check_invariant_attention(const at::Tensor& mask) {
  TORCH_CHECK(!mask.defined() || (mask.size(1) == 1 && mask.size(2) == 1),
              "[attention] expected an invariant forward to have one mask for all queries of a row, got ", mask.sizes());
}

Attended attend_invariantly(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask,
                            const at::Tensor& bias, bool causal, int64_t window, float scale) {
  const auto dense = [](const at::Tensor& x) { return x.stride(3) == 1 ? x : x.contiguous(); };
  const at::Tensor dense_q = dense(q), dense_k = dense(k), dense_v = dense(v);
  std::vector<SeenKeys> seen;
  for (int64_t batch = 0; batch < q.size(0); batch++) seen.push_back(seen_keys(mask, batch, k.size(2)));
  const Attended result{projected_heads(q.sizes(), q.options()),
                                   at::empty({q.size(0), q.size(1), q.size(2), 1}, q.options().dtype(at::kFloat))};
  with_float_type(q.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    attend_queries<Element>(dense_q, dense_k, dense_v, seen, bias, causal, window, scale, result);
  });
  return result;
}

}  // namespace troupe
