// Kernels that write texts, attention to pages and drawing: memory for their results.
#include <ATen/ops/empty.h>

#include <algorithm>

#include "kernels/cuda/call.h"
#include "kernels/register.h"

namespace troupe::cuda {
namespace {

PageSlabs slabs_of(at::TensorList tensors) {
  TORCH_CHECK(tensors.size() <= kMostSlabs, "[paged_attention_] expected at most ", kMostSlabs, " slabs of pages on a GPU, got ",
              tensors.size());
  const at::Tensor& first = tensors[0];
  PageSlabs slabs{};
  slabs.count = static_cast<int64_t>(tensors.size());
  slabs.pages = first.size(0);
  slabs.groups = first.size(1);
  for (size_t i = 0; i < tensors.size(); i++) slabs.of[i] = tensors[i].data_ptr();
  return slabs;
}

PageHeads heads_of(const at::Tensor& x_1HND) { return {x_1HND.stride(1), x_1HND.stride(2)}; }

at::Tensor paged_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, at::TensorList keys, at::TensorList values,
                           const at::Tensor& table, const at::Tensor& texts, const at::Tensor& positions, const at::Tensor& written,
                           const at::Tensor& bias, int64_t window, float scale) {
  const Call call(q);
  const int64_t heads = q.size(1), tokens = q.size(2), width = q.size(3), columns = table.size(1);
  PageSlabs key_slabs = slabs_of(keys), value_slabs = slabs_of(values);
  key_slabs.width = value_slabs.width = width;
  const PagePlaces places{table.data_ptr<int64_t>(), texts.data_ptr<int64_t>(), positions.data_ptr<int64_t>(), table.size(0), columns,
                          tokens};
  PagePlaces written_places = places;
  if (written.defined()) {
    written_places.tokens = written.size(1);
    written_places.texts = written.data_ptr<int64_t>();
    written_places.positions = written_places.texts + written_places.tokens;
  }
  launch_write_pages(call.stream(), format_of(k), key_slabs, value_slabs, written_places, k.data_ptr(), heads_of(k), v.data_ptr(),
                     heads_of(v));
  const int64_t blocks = std::min(kMostAttending, tokens * heads);
  const at::Tensor scratch = at::empty({blocks, columns * kPagePositions}, q.options().dtype(at::kFloat));
  const at::Tensor out_NHD = at::empty({1, tokens, heads, width}, q.options());
  const PageBias biases{bias.defined() ? floats(bias) : nullptr, bias.defined() ? bias.size(1) : 0};
  launch_attend_pages(call.stream(), format_of(q), key_slabs, value_slabs, places, q.data_ptr(), heads_of(q), heads, biases, window, scale,
                      blocks, floats(scratch), out_NHD.data_ptr());
  return out_NHD.transpose(1, 2);
}

at::Tensor draw_tokens(const at::Tensor& logits, const at::Tensor& uniforms, const Restriction& restriction) {
  const Call call(logits);
  const Rows rows = rows_of(logits);
  const auto wide = logits.options().dtype(at::kFloat);
  const at::Tensor tokens = at::empty({rows.rows}, logits.options().dtype(at::kLong));
  const at::Tensor weights = at::empty({rows.rows, rows.dim}, wide), sums = at::empty({rows.rows, drawn_pieces(rows.dim)}, wide);
  launch_draw_tokens(call.stream(), format_of(logits), rows, logits.data_ptr(), floats(uniforms), restriction, floats(weights),
                     floats(sums), tokens.data_ptr<int64_t>());
  return tokens;
}

TROUPE_CUDA_KERNEL(paged_attention, paged_attention);
TROUPE_CUDA_KERNEL(draw_tokens, draw_tokens);

}  // namespace
}  // namespace troupe::cuda
