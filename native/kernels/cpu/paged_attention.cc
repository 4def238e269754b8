// Attention of many texts at once, of any lengths, whose keys and values lie in pages of eight positions: a page belongs to any
// text whose table names it. Kwon et al. 2023, https://arxiv.org/abs/2309.06180.
//
// q [1,H,N,D], k and v [1,G,N,D], H a multiple of G: N tokens, token n at positions[n] of the text texts[n]. Slabs of P pages each:
// keys [P,G,D,8], so that eight scores are made side by side, values [P,G,8,D]. A row of `table` has the number of positions that a text
// shares, if their last page is not full (place_in_pages), else 0, and then its pages. The keys and values of all tokens are written
// first, so a token sees those that came with it. With `written` [2,M] k and v are [1,G,M,D] and belong to the texts of its first row, at
// the positions of its second: tokens read other texts than their own, such as an encoder's. `bias` [H,L] is added to the scaled scores
// of keys 0 to L - 1 before the token's position, its last column to all keys beyond. The sums of a token have one order, which depends on
// its position alone.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/page_rows.h"
#include "kernels/register.h"

namespace troupe {
namespace {

using Optional = c10::optional<at::Tensor>;

// The places of the tokens of a pass; int64, contiguous.
struct Places {
  const int64_t *table, *texts, *positions;
  int64_t columns;  // of the table
  int64_t tokens;

  int64_t shared(int64_t token) const { return table[texts[token] * columns]; }
  const int64_t* pages(int64_t token) const { return table + texts[token] * columns + 1; }
  int64_t place(int64_t token) const { return place_in_pages(positions[token], shared(token)); }
};

void check_pages(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, at::TensorList keys, at::TensorList values,
                 const at::Tensor& table, const at::Tensor& texts, const at::Tensor& positions, const Optional& written,
                 const Optional& bias) {
  TORCH_CHECK(!written || (written->dim() == 2 && written->size(0) == 2 && written->scalar_type() == at::kLong &&
                           written->is_contiguous()),
              "[paged_attention_] expected written to be int64 [2, tokens], got ", written ? written->sizes() : at::IntArrayRef());
  TORCH_CHECK(q.dim() == 4 && k.dim() == 4 && k.sizes() == v.sizes() && q.size(0) == 1 && k.size(0) == 1 &&
                  k.size(2) == (written ? written->size(1) : q.size(2)) && q.size(3) == k.size(3) && k.size(1) > 0 &&
                  q.size(1) % k.size(1) == 0,
              "[paged_attention_] expected q to be [1, heads, tokens, width], k and v [1, groups, tokens, width], got ", q.sizes(),
              ", ", k.sizes(), " and ", v.sizes());
  TORCH_CHECK(!bias || (bias->dim() == 2 && bias->size(0) == q.size(1) && bias->size(1) > 0 && bias->scalar_type() == at::kFloat &&
                        bias->is_contiguous()),
              "[paged_attention_] expected bias to be float32 [", q.size(1), ", distances], got ",
              bias ? bias->sizes() : at::IntArrayRef());
  TORCH_CHECK(with_float_type(q.scalar_type(), [](auto*) {}) && k.scalar_type() == q.scalar_type() &&
                  v.scalar_type() == q.scalar_type(),
              "[paged_attention_] expected q, k and v all to be float32, bfloat16 or float16, got ", q.scalar_type(), ", ",
              k.scalar_type(), " and ", v.scalar_type());
  TORCH_CHECK(!keys.empty() && keys.size() == values.size(), "[paged_attention_] expected as many slabs of keys as of values, got ",
              keys.size(), " and ", values.size());
  const int64_t pages = keys[0].size(0), groups = k.size(1), width = k.size(3);
  for (size_t i = 0; i < keys.size(); i++) {
    const at::Tensor &key = keys[i], &value = values[i];
    TORCH_CHECK(key.is_contiguous() && value.is_contiguous() && key.scalar_type() == q.scalar_type() &&
                    value.scalar_type() == q.scalar_type() && key.sizes() == at::IntArrayRef({pages, groups, width, kPagePositions}) &&
                    value.sizes() == at::IntArrayRef({pages, groups, kPagePositions, width}),
                "[paged_attention_] expected slabs of pages [", groups, ", ", width, ", ", kPagePositions, "] and [", groups, ", ",
                kPagePositions, ", ", width, "], got ", key.sizes(), " and ", value.sizes());
  }
  const int64_t tokens = q.size(2);
  TORCH_CHECK(table.dim() == 2 && texts.dim() == 1 && positions.dim() == 1 && texts.size(0) == tokens && positions.size(0) == tokens &&
                  table.scalar_type() == at::kLong && texts.scalar_type() == at::kLong && positions.scalar_type() == at::kLong &&
                  table.size(1) > 0 && table.is_contiguous() && texts.is_contiguous() && positions.is_contiguous(),
              "[paged_attention_] expected a table of int64 [texts, 1 + pages], a text and a position for each of ", tokens,
              " tokens, got ", table.sizes(), ", ", texts.sizes(), " and ", positions.sizes());
}

// A GPU's are not read by the host: there a token whose place is none gets NaN.
Places check_places(const at::Tensor& table, const at::Tensor& texts, const at::Tensor& positions, int64_t all_pages) {
  const Places places{table.data_ptr<int64_t>(), texts.data_ptr<int64_t>(), positions.data_ptr<int64_t>(), table.size(1), texts.size(0)};
  for (int64_t token = 0; token < places.tokens; token++) {
    const int64_t text = places.texts[token], position = places.positions[token];
    const bool known = text >= 0 && text < table.size(0) && position >= 0 && places.shared(token) >= 0;
    TORCH_CHECK_INDEX(known && places.place(token) < (places.columns - 1) * kPagePositions,
                      "[paged_attention_] expected a place in the table, got position ", position, " of text ", text);
    for (int64_t page = places.place(token) / kPagePositions; page >= 0; page--) {
      const int64_t index = places.pages(token)[page];
      TORCH_CHECK_INDEX(index >= 0 && index < all_pages, "[paged_attention_] expected pages below ", all_pages, ", got ", index);
    }
  }
  return places;
}

template <class Element>
void write_pages(const at::Tensor& k, const at::Tensor& v, const Slabs<Element>& keys, const Slabs<Element>& values,
                 const Places& places) {
  const int64_t width = keys.width;
  const auto *from_k = k.data_ptr<Element>(), *from_v = v.data_ptr<Element>();
  at::parallel_for(0, places.tokens, grain_rows(2 * keys.groups * width), [&](int64_t first, int64_t last) {
    for (int64_t token = first; token < last; token++) {
      const int64_t place = places.place(token) % kPagePositions, page = places.pages(token)[places.place(token) / kPagePositions];
      for (int64_t group = 0; group < keys.groups; group++) {
        const auto* key = from_k + group * k.stride(1) + token * k.stride(2);
        const auto* value = from_v + group * v.stride(1) + token * v.stride(2);
        auto* to_key = keys.page(page, group) + place;
        for (int64_t d = 0; d < width; d++) to_key[d * kPagePositions] = key[d];
        std::copy(value, value + width, values.page(page, group) + place * width);
      }
    }
  });
}

// [1,H,N,D], laid out as [1,N,H,D].
at::Tensor attend_pages(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, at::TensorList keys, at::TensorList values,
                        const at::Tensor& table, const at::Tensor& texts, const at::Tensor& positions, const at::Tensor& written,
                        const at::Tensor& bias, int64_t window, float scale) {
  const int64_t all_pages = keys[0].size(0) * static_cast<int64_t>(keys.size());
  const Places places = check_places(table, texts, positions, all_pages);
  const Places written_places = written.defined() ? check_places(table, written.select(0, 0), written.select(0, 1), all_pages) : places;
  const int64_t heads = q.size(1), tokens = q.size(2), width = q.size(3), groups = k.size(1), readers = heads / groups;
  at::Tensor out_NHD = at::empty({1, tokens, heads, width}, q.options());
  const int64_t sum_positions = [&] {
    int64_t sum = 0;
    for (int64_t token = 0; token < tokens; token++) sum += places.positions[token] + 1;
    return sum;
  }();
  const int64_t work = 2 * readers * width * std::max<int64_t>(1, sum_positions / std::max<int64_t>(1, tokens));
  with_float_type(q.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    const Slabs<Element> key_slabs(keys, width), value_slabs(values, width);
    write_pages<Element>(k, v, key_slabs, value_slabs, written_places);
    const auto* from = q.data_ptr<Element>();
    const float* const biases = bias.defined() ? bias.data_ptr<float>() : nullptr;
    const int64_t distances = bias.defined() ? bias.size(1) : 0;
    auto* to = out_NHD.data_ptr<Element>();
    // Group after group, so that threads, which take halves, have as many positions to read each.
    at::parallel_for(0, groups * tokens, grain_rows(work), [&](int64_t first, int64_t last) {
      std::vector<float> scratch(static_cast<size_t>(2 * width + places.columns * kPagePositions));
      for (int64_t item = first; item < last; item++) {
        const int64_t group = item / tokens, token = item % tokens, seen = places.positions[token] + 1;
        const Reading<Element> reading{&key_slabs,
                                       &value_slabs,
                                       places.pages(token),
                                       places.shared(token),
                                       group,
                                       window > 0 ? std::max<int64_t>(0, seen - window) : 0,
                                       seen,
                                       from + group * readers * q.stride(1) + token * q.stride(2),
                                       q.stride(1),
                                       readers,
                                       to + (token * heads + group * readers) * width,
                                       scale,
                                       scratch.data(),
                                       nullptr,
                                       0,
                                       biases ? biases + group * readers * distances : nullptr,
                                       distances};
        run_best<AttendPages<Element>>(&reading);
      }
    });
  });
  return out_NHD.transpose(1, 2);
}

TROUPE_KERNEL(paged_attention, attend_pages);

at::Tensor attend_in_pages(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, at::TensorList keys,
                           at::TensorList values, const at::Tensor& table, const at::Tensor& texts, const at::Tensor& positions,
                           const Optional& written, const Optional& bias, int64_t window, double scale) {
  check_pages(q, k, v, keys, values, table, texts, positions, written, bias);
  const auto dense = [](const at::Tensor& x) { return x.stride(3) == 1 ? x : x.contiguous(); };
  return paged_attention_kernel(dense(q), dense(k), dense(v), keys, values, table, texts, positions, written.value_or(at::Tensor()),
                                bias.value_or(at::Tensor()), window, static_cast<float>(scale));
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def(
      "paged_attention_(Tensor q, Tensor k, Tensor v, Tensor[] keys, Tensor[] values, Tensor table, Tensor texts, Tensor positions, "
      "Tensor? written, Tensor? bias, int window, float scale) -> Tensor");
}

TROUPE_OPERATORS(m) { m.impl("paged_attention_", attend_in_pages); }

}  // namespace troupe
