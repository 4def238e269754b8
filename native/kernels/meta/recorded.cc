// Troupe's kernels on tensors without memory: what each returns, keeps for its backward and makes in it, as shapes.
// Nothing is computed; a meter (core/dispatch/meter.h) sees the bytes come and go as the kernels' own would, and counts the products.
// Where it meters a GPU, those are the kernels of kernels/cuda.
#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <algorithm>
#include <tuple>

#include "core/autograd/differentiable.h"
#include "core/dispatch/meter.h"

namespace troupe {
namespace {

using Optional = c10::optional<at::Tensor>;

at::Tensor shape_of(at::IntArrayRef sizes, const at::Tensor& like, at::ScalarType dtype) {
  return at::empty(sizes, like.options().dtype(dtype));
}

at::Tensor wide(at::IntArrayRef sizes, const at::Tensor& like) { return shape_of(sizes, like, at::kFloat); }

int64_t rows_of(const at::Tensor& x) { return x.size(-1) == 0 ? 0 : x.numel() / x.size(-1); }

double count(const at::Tensor& x) { return static_cast<double>(x.numel()); }

// Laid out as [B,T,H,D] and seen as [B,H,T,D], as attention writes it.
at::Tensor heads_like(const at::Tensor& x_BHTD) {
  return at::empty({x_BHTD.size(0), x_BHTD.size(2), x_BHTD.size(1), x_BHTD.size(3)}, x_BHTD.options()).transpose(1, 2);
}

at::Tensor dense(const at::Tensor& x) { return x.detach().contiguous(); }

// Sums over rows are made in blocks of them, a float32 row each (kernels/cpu/row_blocks.h).
at::Tensor row_sums(const at::Tensor& x) {
  const int64_t rows = std::max<int64_t>(16, (rows_of(x) + 63) / 64);
  return wide({std::max<int64_t>(1, (rows_of(x) + rows - 1) / rows), x.size(-1)}, x);
}

// --- norms --------------------------------------------------------------------------------------

Tensors norm_gradients(const at::Tensor& x, const at::Tensor& weight, bool has_bias) {
  const at::Tensor dx = at::empty_like(x), sums = row_sums(x), more = has_bias ? row_sums(x) : at::Tensor();
  return {dx, at::empty_like(weight), has_bias ? at::empty_like(weight) : at::Tensor()};
}

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const Optional& bias, double) {
  const at::Tensor input = dense(x), y = at::empty_like(input);
  record("layer_norm", {x, weight, bias.value_or(at::Tensor())}, {y},
         {input, weight, wide({rows_of(x)}, x), wide({rows_of(x)}, x)}, [](const Tensors& d, const Tensors& saved) {
           const at::Tensor dy = d[0].contiguous();
           return norm_gradients(saved[0], saved[1], true);
         });
  return y;
}

// If only the sum has a gradient, the norm has no backward.
Tensors added_norm_gradients(const Tensors& d, const Tensors& saved, bool has_bias) {
  const at::Tensor dsum = d[0].defined() ? d[0].contiguous() : at::Tensor();
  if (!d[1].defined()) return {dsum, dsum, at::Tensor(), at::Tensor()};
  const at::Tensor dy = d[1].contiguous();
  const Tensors of_norm = norm_gradients(saved[0], saved[1], has_bias);
  return {of_norm[0], of_norm[0], of_norm[1], of_norm[2]};
}

std::tuple<at::Tensor, at::Tensor> add_layer_norm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                                                  const Optional& bias, double) {
  const at::Tensor sum = at::empty(x.sizes(), x.options()), y = at::empty_like(sum);
  record("add_layer_norm", {x, residual, weight, bias.value_or(at::Tensor())}, {sum, y},
         {sum, weight, wide({rows_of(x)}, x), wide({rows_of(x)}, x)},
         [](const Tensors& d, const Tensors& saved) { return added_norm_gradients(d, saved, true); });
  return {sum, y};
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double) {
  const at::Tensor input = dense(x), y = at::empty_like(input);
  record("rms_norm", {x, weight}, {y}, {input, weight, wide({rows_of(x)}, x)}, [](const Tensors& d, const Tensors& saved) {
    const at::Tensor dy = d[0].contiguous();
    Tensors gradients = norm_gradients(saved[0], saved[1], false);
    gradients.pop_back();
    return gradients;
  });
  return y;
}

std::tuple<at::Tensor, at::Tensor> add_rms_norm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                                                double) {
  const at::Tensor sum = at::empty(x.sizes(), x.options()), y = at::empty_like(sum);
  record("add_rms_norm", {x, residual, weight}, {sum, y}, {sum, weight, wide({rows_of(x)}, x)},
         [](const Tensors& d, const Tensors& saved) {
           Tensors gradients = added_norm_gradients(d, saved, false);
           gradients.pop_back();
           return gradients;
         });
  return {sum, y};
}

// --- element by element -------------------------------------------------------------------------

at::Tensor bias_gelu(const at::Tensor& x, const at::Tensor& bias, c10::string_view) {
  const at::Tensor input = dense(x), y = at::empty_like(input);
  record("bias_gelu", {x, bias}, {y}, {input, bias}, [](const Tensors& d, const Tensors& saved) -> Tensors {
    const at::Tensor dy = d[0].contiguous(), dx = at::empty_like(saved[0]), sums = row_sums(saved[0]);
    return {dx, at::empty_like(saved[1])};
  });
  return y;
}

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  const at::Tensor gates = dense(gate), ups = dense(up), y = at::empty_like(gates);
  record("swiglu", {gate, up}, {y}, {gates, ups}, [](const Tensors& d, const Tensors& saved) -> Tensors {
    const at::Tensor dy = d[0].contiguous();
    return {at::empty_like(saved[0]), at::empty_like(saved[1])};
  });
  return y;
}

// Neither the mask nor the angles are kept: the one is drawn again, the other every layer has in common.
at::Tensor dropout(const at::Tensor& x, double, int64_t, int64_t, int64_t, int64_t, int64_t) {
  const at::Tensor y = at::empty_like(x.contiguous());
  record("dropout", {x}, {y}, {}, [](const Tensors& d, const Tensors&) -> Tensors { return {at::empty_like(d[0].contiguous())}; });
  return y;
}

at::Tensor rotary(const at::Tensor& x, const at::Tensor&, const at::Tensor&) {
  const at::Tensor y = heads_like(x);
  record("rotary", {x}, {y}, {}, [](const Tensors& d, const Tensors&) -> Tensors { return {heads_like(d[0])}; });
  return y;
}

at::Tensor relu(const at::Tensor& x) {
  const at::Tensor y = at::empty_like(x);
  record("relu", {x}, {y}, {y}, [](const Tensors&, const Tensors& saved) -> Tensors { return {at::empty_like(saved[0])}; });
  return y;
}

// --- attention ----------------------------------------------------------------------------------

// Rows of queries and float32 scores that the kernels take at a time.
constexpr int64_t kRowsAtATime = 128;
constexpr int64_t kScoresAtOnce = int64_t{1} << 20;

// Scores of as many heads and rows as are taken at a time: `copies` of them in float32.
at::Tensor scores_at_a_time(const at::Tensor& q, const at::Tensor& k, int64_t copies) {
  const int64_t rows = std::min(kRowsAtATime, q.size(2)), keys = k.size(2);
  const int64_t heads = std::min(std::max<int64_t>(1, kScoresAtOnce / std::max<int64_t>(1, rows * keys)), q.size(0) * q.size(1));
  return wide({copies, heads, rows, keys}, q);
}

// FLOPs of the products of all queries with all keys; half of that if causal.
double attention_flops(const at::Tensor& q, const at::Tensor& k, bool causal, int64_t num_products) {
  const double products = 2.0 * static_cast<double>(num_products) * count(q) * static_cast<double>(k.size(2));
  return causal ? products / 2 : products;
}

// The memory of libtorch's flash attention in a backward that adds in a fixed order: float32 sums of the queries' gradients, one for each
// of the parts that keys are cut into so that all processors have work, and a float32 for each row.
std::pair<at::Tensor, at::Tensor> ordered_sums(const at::Tensor& q) {
  constexpr int64_t kProcessors = 132;  // of an H100
  const int64_t heads = q.size(0) * q.size(1), rows = (q.size(2) + 127) / 128 * 128, width = (q.size(3) + 31) / 32 * 32;
  const int64_t parts = (kProcessors + heads - 1) / std::max<int64_t>(1, heads);
  return {wide({parts, heads, rows, width}, q), wide({heads, rows}, q)};
}

// `added` [B,H,T,S or broadcastable to it]: mask and bias as one tensor; undefined if there is none, or only the causal mask.
at::Tensor attend_on_gpu(const char* op, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& bias,
                         const at::Tensor& added, bool causal) {
  count_flops(attention_flops(q, k, causal, 2), q);
  const at::Tensor out = heads_like(q), logsumexp = wide({q.size(0), q.size(1), q.size(2)}, q);
  const int64_t readers = q.size(1) / std::max<int64_t>(1, k.size(1));  // each has keys and values of its own here
  const auto for_heads = [&](const at::Tensor& x) {
    return readers == 1 ? x : at::empty({x.size(0), q.size(1), x.size(2), x.size(3)}, x.options());
  };
  const at::Tensor keys = for_heads(k), values = for_heads(v), queries = added.defined() ? at::empty_like(q) : q;
  record(op, {q, k, v, bias}, {out}, {queries, keys, values, out, logsumexp, added},
         [causal, readers, groups = k.size(1), wants_bias = bias.defined() && bias.requires_grad(),
          bias_sizes = bias.defined() ? bias.sizes().vec() : std::vector<int64_t>()](const Tensors&, const Tensors& saved) -> Tensors {
           const at::Tensor &q = saved[0], &k = saved[1];
           count_flops(attention_flops(q, k, causal, 5), q);
           const at::Tensor dq = heads_like(q), dk = heads_like(k), dv = heads_like(k);
           const auto sums = ordered_sums(q);
           const auto of_groups = [&](const at::Tensor& x) {
             return readers == 1 ? x : at::empty({x.size(0), groups, x.size(2), x.size(3)}, x.options());
           };
           const at::Tensor dbias = wants_bias ? at::empty({q.size(0), q.size(1), q.size(2), k.size(2)}, q.options()) : at::Tensor();
           return {dq, of_groups(dk), of_groups(dv), wants_bias ? shape_of(bias_sizes, q, q.scalar_type()) : at::Tensor()};
         });
  return out;
}

// The mask and bias of a query as one tensor of q's dtype, from its arguments and from its place.
at::Tensor one_mask(const at::Tensor& q, const at::Tensor& k, const Optional& mask, const Optional& bias, bool by_place) {
  std::vector<int64_t> sizes{1, 1};
  if (by_place) sizes = {q.size(2), k.size(2)};
  if (mask) sizes = at::infer_size(sizes, mask->sizes());
  const at::Tensor seen = mask || by_place ? shape_of(sizes, q, at::kBool) : at::Tensor();
  if (bias) sizes = at::infer_size(sizes, bias->sizes());
  return shape_of(sizes, q, q.scalar_type());
}

at::Tensor attend(const char* op, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& bias,
                  bool causal) {
  if (meters_gpu()) return attend_on_gpu(op, q, k, v, bias, at::Tensor(), causal);
  count_flops(attention_flops(q, k, causal, 2), q);
  const at::Tensor out = heads_like(q), logsumexp = wide({q.size(0), q.size(1), q.size(2), 1}, q);
  const at::Tensor scores = scores_at_a_time(q, k, 2);
  record(op, {q, k, v, bias}, {out}, {q, k, v, out, logsumexp, bias.defined() ? bias.detach() : bias},
         [causal, wants_bias = bias.defined() && bias.requires_grad()](const Tensors&, const Tensors& saved) -> Tensors {
           const at::Tensor &q = saved[0], &k = saved[1], &bias = saved[5];
           count_flops(attention_flops(q, k, causal, 5), q);
           const at::Tensor dq = heads_like(q), dk = wide(k.sizes(), k), dv = wide(k.sizes(), k);
           const at::Tensor dbias = wants_bias ? wide(bias.sizes(), bias) : at::Tensor();
           scores_at_a_time(q, k, wants_bias ? 4 : 3);
           const at::Tensor dk_narrow = heads_like(k), dv_narrow = heads_like(k);
           return {dq, dk_narrow, dv_narrow, wants_bias ? dbias.to(bias.scalar_type()) : at::Tensor()};
         });
  return out;
}

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal, double) {
  return attend("attention", q, k, v, at::Tensor(), causal);
}

at::Tensor masked_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Optional& mask,
                            const Optional& bias, bool causal, int64_t window, double) {
  const at::Tensor biases = bias.value_or(at::Tensor());
  const bool by_place = window > 0 || (causal && q.size(2) != 1 && q.size(2) != k.size(2));
  if (!meters_gpu() || (!mask && !bias && !by_place)) return attend("masked_attention", q, k, v, biases, causal);
  const at::Tensor added = one_mask(q, k, mask, bias, causal || window > 0);
  return attend_on_gpu("masked_attention", q, k, v, biases, added, causal);
}

// Dropped weights are drawn again in backward.
at::Tensor dropped_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Optional&, const Optional& bias,
                             bool causal, int64_t, double, double, int64_t, int64_t, int64_t, int64_t, int64_t) {
  return attend("dropped_attention", q, k, v, bias.value_or(at::Tensor()), causal);
}

// --- losses -------------------------------------------------------------------------------------

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor&, int64_t) {
  const at::Tensor rows = dense(logits), loss = wide({}, logits);
  record("cross_entropy", {logits}, {loss}, {rows, wide({logits.size(0)}, logits)},
         [](const Tensors&, const Tensors& saved) -> Tensors { return {at::empty_like(saved[0])}; });
  return loss;
}

// Logits that exist at a time, as in the kernels.
int64_t logits_bytes() { return meters_gpu() ? int64_t{1} << 30 : int64_t{64} << 20; }

// A GPU's products take classes in full groups: weight with rows of zeros behind it.
at::Tensor in_whole_groups(const at::Tensor& weight) {
  constexpr int64_t kClassesAtOnce = 64;
  const int64_t classes = weight.size(0);
  if (!meters_gpu() || classes < kClassesAtOnce || classes % kClassesAtOnce == 0) return weight;
  return shape_of({(classes + kClassesAtOnce - 1) / kClassesAtOnce * kClassesAtOnce, weight.size(1)}, weight, weight.scalar_type());
}

// A gradient made in forward, times a scalar: of a GPU's, which nobody reads, a new tensor.
at::Tensor times_scalar(const at::Tensor& gradient) {
  return gradient.defined() && meters_gpu() ? at::empty_like(gradient) : gradient;
}

at::Tensor linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor&, int64_t) {
  const at::Tensor table = in_whole_groups(weight);
  const int64_t rows = hidden.size(0), classes = table.size(0);
  const int64_t row_bytes = std::max<int64_t>(1, classes * static_cast<int64_t>(hidden.element_size()));
  const int64_t at_a_time = std::min(rows, std::max<int64_t>(1, logits_bytes() / row_bytes));
  const bool wants_hidden = wants_gradient({hidden}), wants_weight = wants_gradient({weight});
  count_flops(2.0 * count(hidden) * static_cast<double>(classes) * (1 + wants_hidden + wants_weight), hidden);
  const at::Tensor loss = wide({}, hidden), dhidden = wants_hidden ? at::empty_like(hidden) : at::Tensor();
  at::Tensor dweight;
  {
    const at::Tensor input = hidden.contiguous(), logits = shape_of({at_a_time, classes}, hidden, hidden.scalar_type());
    if (wants_weight && at_a_time < rows) {
      const at::Tensor sum = wide(table.sizes(), weight);
      at::empty_like(table);
      dweight = sum.narrow(0, 0, weight.size(0)).to(weight.scalar_type());
    } else if (wants_weight) {
      dweight = at::empty_like(table).narrow(0, 0, weight.size(0));
    }
  }
  record("linear_cross_entropy", {hidden, weight}, {loss}, {dhidden, dweight},
         [](const Tensors&, const Tensors& saved) -> Tensors { return {times_scalar(saved[0]), times_scalar(saved[1])}; });
  return loss;
}

// As `scaled` in core/autograd/attach_gradients.cc, by way of float32 on a GPU.
at::Tensor attach_gradients(const at::Tensor& value, at::TensorList inputs, at::TensorList gradients, double) {
  const at::Tensor out = value.detach();
  record("attach_gradients", inputs.vec(), {out}, gradients.vec(), [](const Tensors&, const Tensors& saved) -> Tensors {
    Tensors scaled;
    for (const at::Tensor& gradient : saved) {
      const bool by_float32 = meters_gpu() && gradient.scalar_type() != at::kFloat;
      const at::Tensor given = by_float32 ? wide(gradient.sizes(), gradient) : at::Tensor();
      const at::Tensor product = by_float32 ? wide(gradient.sizes(), gradient) : at::Tensor();
      scaled.push_back(times_scalar(gradient));
    }
    return scaled;
  });
  return out;
}

// --- texts under way: nothing is recorded ------------------------------------------------------------

at::Tensor paged_attention(const at::Tensor& q, const at::Tensor&, const at::Tensor&, at::TensorList, at::TensorList,
                           const at::Tensor&, const at::Tensor&, const at::Tensor&, const Optional&, const Optional&, int64_t, double) {
  return heads_like(q);
}

at::Tensor draw_tokens(const at::Tensor& logits, const at::Tensor&, double, int64_t, double) {
  return shape_of({logits.size(0)}, logits, at::kLong);
}

// --- libtorch's own that have no rule of shapes for backward ----------------------------------------

at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight, const Optional& bias, at::IntArrayRef stride,
                       at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef, int64_t) {
  TORCH_CHECK_NOT_IMPLEMENTED(!transposed, "[convolution] expected no transposed one of tensors without memory, got one");
  at::DimVector sizes{x.size(0), weight.size(0)};
  const auto of = [](at::IntArrayRef given, size_t dim) { return given[given.size() == 1 ? 0 : dim]; };
  for (size_t dim = 0; dim + 2 < static_cast<size_t>(x.dim()); dim++) {
    const auto at_dim = static_cast<int64_t>(dim) + 2;
    const int64_t reach = of(dilation, dim) * (weight.size(at_dim) - 1) + 1;
    sizes.push_back((x.size(at_dim) + 2 * of(padding, dim) - reach) / of(stride, dim) + 1);
  }
  const at::Tensor y = at::empty(sizes, x.options());
  // Forward is counted with libtorch's other products.
  const double flops = 2 * count(y) * count(weight) / static_cast<double>(std::max<int64_t>(1, weight.size(0)));
  const bool wants_x = wants_gradient({x}), has_bias = bias.has_value();
  record("convolution", {x, weight, bias.value_or(at::Tensor())}, {y}, {x, weight},
         [flops, wants_x, has_bias](const Tensors&, const Tensors& saved) -> Tensors {
           count_flops(wants_x ? 2 * flops : flops, saved[0]);
           return {wants_x ? at::empty_like(saved[0]) : at::Tensor(), at::empty_like(saved[1]),
                   has_bias ? at::empty({saved[1].size(0)}, saved[1].options()) : at::Tensor()};
         });
  return y;
}

void register_shapes(torch::Library& m) {
  m.impl("attention", attention);
  m.impl("masked_attention", masked_attention);
  m.impl("dropped_attention", dropped_attention);
  m.impl("bias_gelu", bias_gelu);
  m.impl("dropout", dropout);
  m.impl("layer_norm", layer_norm);
  m.impl("add_layer_norm", add_layer_norm);
  m.impl("rms_norm", rms_norm);
  m.impl("add_rms_norm", add_rms_norm);
  m.impl("rotary", rotary);
  m.impl("swiglu", swiglu);
  m.impl("cross_entropy", cross_entropy);
  m.impl("linear_cross_entropy", linear_cross_entropy);
  m.impl("paged_attention_", paged_attention);
  m.impl("draw_tokens", draw_tokens);
}

void register_libtorchs(torch::Library& m) {
  m.impl("convolution", convolution);
  m.impl("relu", relu);
}

}  // namespace

// One rule for both: where no gradient is wanted nothing is recorded.
TORCH_LIBRARY_IMPL(troupe, Meta, m) { register_shapes(m); }
TORCH_LIBRARY_IMPL(troupe, AutogradMeta, m) { register_shapes(m); }
TORCH_LIBRARY_IMPL(troupe, AutogradMeta, m) { m.impl("attach_gradients", attach_gradients); }
TORCH_LIBRARY_IMPL(aten, Meta, m) { register_libtorchs(m); }
TORCH_LIBRARY_IMPL(aten, AutogradMeta, m) { register_libtorchs(m); }

}  // namespace troupe
