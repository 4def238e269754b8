// Troupe's kernels on tensors without memory: what each returns, keeps for its backward and makes in it, as shapes.
// Nothing is computed; a meter (core/dispatch/meter.h) sees the bytes come and go as the kernels' own would, and counts the products.
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

// Of the sum alone no norm is walked.
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

// Products of all queries with all keys; half of that where each sees what came before it.
double attention_flops(const at::Tensor& q, const at::Tensor& k, bool causal, int64_t num_products) {
  const double products = 2.0 * static_cast<double>(num_products) * count(q) * static_cast<double>(k.size(2));
  return causal ? products / 2 : products;
}

at::Tensor attend(const char* op, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& bias,
                  bool causal) {
  count_flops(attention_flops(q, k, causal, 2));
  const at::Tensor out = heads_like(q), logsumexp = wide({q.size(0), q.size(1), q.size(2), 1}, q);
  const at::Tensor scores = scores_at_a_time(q, k, 2);
  record(op, {q, k, v, bias}, {out}, {q, k, v, out, logsumexp, bias.defined() ? bias.detach() : bias},
         [causal, wants_bias = bias.defined() && bias.requires_grad()](const Tensors&, const Tensors& saved) -> Tensors {
           const at::Tensor &q = saved[0], &k = saved[1], &bias = saved[5];
           count_flops(attention_flops(q, k, causal, 5));
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

at::Tensor masked_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Optional&, const Optional& bias,
                            bool causal, int64_t, double) {
  return attend("masked_attention", q, k, v, bias.value_or(at::Tensor()), causal);
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

// Logits that exist at a time, as in the kernel.
constexpr int64_t kLogitsBytes = int64_t{64} << 20;

at::Tensor linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor&, int64_t) {
  const int64_t rows = hidden.size(0), classes = weight.size(0);
  const int64_t row_bytes = std::max<int64_t>(1, classes * static_cast<int64_t>(hidden.element_size()));
  const int64_t at_a_time = std::min(rows, std::max<int64_t>(1, kLogitsBytes / row_bytes));
  const bool wants_hidden = wants_gradient({hidden}), wants_weight = wants_gradient({weight});
  count_flops(2.0 * count(hidden) * static_cast<double>(classes) * (1 + wants_hidden + wants_weight));
  const at::Tensor loss = wide({}, hidden), dhidden = wants_hidden ? at::empty_like(hidden) : at::Tensor();
  at::Tensor dweight;
  {
    const at::Tensor input = hidden.contiguous(), logits = shape_of({at_a_time, classes}, hidden, hidden.scalar_type());
    if (wants_weight && at_a_time < rows) {
      const at::Tensor sum = wide(weight.sizes(), weight);
      shape_of(weight.sizes(), weight, weight.scalar_type());
      dweight = sum.to(weight.scalar_type());
    } else if (wants_weight) {
      dweight = at::empty_like(weight);
    }
  }
  record("linear_cross_entropy", {hidden, weight}, {loss}, {dhidden, dweight},
         [](const Tensors&, const Tensors& saved) { return saved; });
  return loss;
}

// --- libtorch's own that have no rule of shapes for backward ----------------------------------------

at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight, const Optional& bias, at::IntArrayRef stride,
                       at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef, int64_t) {
  TORCH_CHECK_NOT_IMPLEMENTED(!transposed, "[convolution] of tensors without memory there are no transposed ones");
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
           count_flops(wants_x ? 2 * flops : flops);
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
}

void register_libtorchs(torch::Library& m) {
  m.impl("convolution", convolution);
  m.impl("relu", relu);
}

}  // namespace

// One rule for both: where no gradient is wanted nothing is recorded.
TORCH_LIBRARY_IMPL(troupe, Meta, m) { register_shapes(m); }
TORCH_LIBRARY_IMPL(troupe, AutogradMeta, m) { register_shapes(m); }
TORCH_LIBRARY_IMPL(aten, Meta, m) { register_libtorchs(m); }
TORCH_LIBRARY_IMPL(aten, AutogradMeta, m) { register_libtorchs(m); }

}  // namespace troupe
