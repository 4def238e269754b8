// Mean cross entropy of hidden @ weight^T that never holds all logits: it takes rows in chunks, and a chunk's gradient overwrites its logits.
// A chunk's logits fill 64 MiB, with tiles up to two weights if that is more. Forward makes the gradients, if they are wanted; backward
// scales them. hidden_ND, weight_VD, targets_N.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include <algorithm>
#include <type_traits>

#include "core/autograd/differentiable.h"
#include "core/invariance.h"
#include "core/programs/tile_products.h"
#include "kernels/cpu/cross_entropy_rows.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"
#include "kernels/register.h"

namespace troupe {
namespace {

constexpr int64_t kMaxLogitsBytes = int64_t{64} << 20;

// Rows of a product of bfloat16 whose first factor is transposed: libtorch takes 1.25 times as long for 50,257 rows in one.
constexpr int64_t kWeightRows = 4096;

// `to` may be one of the others.
template <class To, class One, class Other>
struct AddNumbers {
  static TROUPE_INLINE void run(To* to, const One* one, const Other* other, int64_t first, int64_t last) {
#pragma GCC ivdep
    for (int64_t i = first; i < last; i++) store(to, i, (0.0f + load(one, i)) + load(other, i));
  }
};

constexpr int64_t kLineNumel = 32;  // bfloat16 in a line of the cache

struct Wanted {
  bool hidden;
  bool weight;
};

struct LossAndGradients {
  at::Tensor loss;       // float32 scalar
  at::Tensor hidden_ND;  // gradients, times `factor` for an incoming gradient of 1; undefined where not wanted
  at::Tensor weight_VD;
  float factor;
};

// The part of a row's weight that is left to backward: float16 cannot hold p / rows, and a loss scale would come too late.
float deferred_factor(const at::Tensor& hidden, const Targets& targets) {
  return hidden.scalar_type() == at::kHalf ? targets.row_weight() : 1.0f;
}

int64_t rows_per_chunk(const at::Tensor& hidden, const at::Tensor& weight) {
  const int64_t row_bytes = std::max<int64_t>(1, weight.size(0) * static_cast<int64_t>(hidden.element_size()));
  // A second chunk's gradient of the weight, and its sum with the first one's, take that much.
  const int64_t with_tiles = wants_tile_products() && hidden.scalar_type() == at::kBFloat16 ? 2 * static_cast<int64_t>(weight.nbytes()) : 0;
  return std::max<int64_t>(1, std::max(kMaxLogitsBytes, with_tiles) / row_bytes);
}

// The tile products gain by so many columns; others are libtorch's.
void write_product(at::Tensor out, const at::Tensor& a, const at::Tensor& b) {
  if (multiplies_tiles(a, b)) return multiply_tiles(a, b, out);
  if (a.scalar_type() != at::kBFloat16 || a.stride(0) != 1) return void(at::mm_out(out, a, b));
  for (int64_t first = 0; first < a.size(0); first += kWeightRows) {
    const int64_t rows = std::min(kWeightRows, a.size(0) - first);
    at::Tensor part = out.narrow(0, first, rows);
    at::mm_out(part, a.narrow(0, first, rows), b);
  }
}

// Tiles write and read rows that begin with a line of the cache; what lies behind the vocabulary is no number.
at::Tensor logits_of(const at::Tensor& hidden_RD, const at::Tensor& weight_VD) {
  if (!tiles_are_quickest() || !multiplies_tiles(hidden_RD, weight_VD.t())) return at::mm(hidden_RD, weight_VD.t()).contiguous();
  const int64_t num_words = weight_VD.size(0), padded = (num_words + kLineNumel - 1) / kLineNumel * kLineNumel;
  const at::Tensor logits_RV = at::empty({hidden_RD.size(0), padded}, hidden_RD.options()).narrow(1, 0, num_words);
  multiply_tiles(hidden_RD, weight_VD.t(), logits_RV);
  return logits_RV;
}

// dH = dlogits weight, a sum over the vocabulary: AMX's tiles would pack a copy of the weight, and are slower than oneDNN's with few rows.
void set_hidden_gradient(at::Tensor dhidden_RD, const at::Tensor& dlogits_RV, const at::Tensor& weight_VD) {
  if (tiles_are_quickest()) at::mm_out(dhidden_RD, dlogits_RV, weight_VD);
  else write_product(dhidden_RD, dlogits_RV, weight_VD);
}

// dW += dlogits^T hidden. Several chunks add up in float32, since bfloat16 would lose the small ones: in a tensor of its own if there are
// more than two.
class WeightGradient {
 public:
  void add(const at::Tensor& dlogits_RV, const at::Tensor& hidden_RD, bool is_last) {
    const at::Tensor chunk_VD = at::empty({dlogits_RV.size(1), hidden_RD.size(1)}, hidden_RD.options());
    write_product(chunk_VD, dlogits_RV.t(), hidden_RD);
    if (!sum_VD_.defined()) {
      sum_VD_ = chunk_VD;
      return;
    }
    const bool is_wide = sum_VD_.scalar_type() == at::kFloat;
    const at::Tensor to = is_last ? chunk_VD : is_wide ? sum_VD_ : at::empty(chunk_VD.sizes(), chunk_VD.options().dtype(at::kFloat));
    add_numbers(to, sum_VD_, chunk_VD);
    sum_VD_ = to;
  }

  const at::Tensor& sum() const { return sum_VD_; }

 private:
  static void add_numbers(const at::Tensor& to, const at::Tensor& one, const at::Tensor& other) {
    with_float_type(to.scalar_type(), [&](auto* to_type) {
      with_float_type(one.scalar_type(), [&](auto* one_type) {
        with_float_type(other.scalar_type(), [&](auto* other_type) {
          using To = std::remove_pointer_t<decltype(to_type)>;
          using One = std::remove_pointer_t<decltype(one_type)>;
          using Other = std::remove_pointer_t<decltype(other_type)>;
          at::parallel_for(0, to.numel(), kGrainElements, [&](int64_t first, int64_t last) {
            run_best<AddNumbers<To, One, Other>>(to.mutable_data_ptr<To>(), one.const_data_ptr<One>(), other.const_data_ptr<Other>(), first,
                                                 last);
          });
        });
      });
    });
  }

  at::Tensor sum_VD_;
};

LossAndGradients compute(const at::Tensor& hidden_ND, const at::Tensor& weight_VD, const Targets& targets, Wanted wanted) {
  const int64_t num_rows = hidden_ND.size(0);
  const int64_t chunk_rows = rows_per_chunk(hidden_ND, weight_VD);
  LossAndGradients out;
  out.factor = deferred_factor(hidden_ND, targets);
  const float scale = targets.row_weight() / out.factor;
  if (wanted.hidden) out.hidden_ND = at::empty_like(hidden_ND);
  WeightGradient weight_gradient;
  double loss_sum = 0;
  for (int64_t first = 0; first < num_rows; first += chunk_rows) {
    const at::Tensor hidden_RD = hidden_ND.narrow(0, first, std::min(chunk_rows, num_rows - first));
    const at::Tensor logits_RV = logits_of(hidden_RD, weight_VD);
    const at::Tensor logsumexp_R = cross_entropy_rows(logits_RV, targets, first, loss_sum);
    if (!wanted.hidden && !wanted.weight) continue;
    const Variant gradients;
    cross_entropy_gradient(logits_RV, logsumexp_R, targets, first, scale, logits_RV);
    if (wanted.hidden) set_hidden_gradient(out.hidden_ND.narrow(0, first, hidden_RD.size(0)), logits_RV, weight_VD);
    if (wanted.weight) weight_gradient.add(logits_RV, hidden_RD, first + chunk_rows >= num_rows);
  }
  if (wanted.weight) out.weight_VD = weight_gradient.sum().defined() ? weight_gradient.sum() : at::zeros_like(weight_VD);
  out.loss = at::scalar_tensor(loss_sum / static_cast<double>(targets.num_counted), at::kFloat);
  return out;
}

at::Tensor mean_loss_in_chunks(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& target_ids,
                               int64_t ignore_index) {
  const Targets targets =
      check_targets("linear_cross_entropy", target_ids, hidden.size(0), weight.size(0), ignore_index);
  const Wanted wanted{wants_gradient({hidden}), wants_gradient({weight})};
  const LossAndGradients out =
      without_recording([&] { return compute(hidden.contiguous(), weight.contiguous(), targets, wanted); });
  record("linear_cross_entropy", {hidden, weight}, {out.loss}, {out.hidden_ND, out.weight_VD},
         [factor = out.factor](const Tensors& gradients, const Tensors& saved) {
           const double scale = gradients[0].item<double>() * factor;
           Tensors scaled = saved;
           for (at::Tensor& gradient : scaled) {
             if (gradient.defined() && scale != 1.0) gradient = gradient.mul(scale);
           }
           return scaled;
         });
  return out.loss;
}

TROUPE_KERNEL(linear_cross_entropy, mean_loss_in_chunks);

at::Tensor linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& target_ids,
                                int64_t ignore_index) {
  TORCH_CHECK(hidden.dim() == 2 && weight.dim() == 2 && hidden.size(1) == weight.size(1),
              "[linear_cross_entropy] expected hidden to be [rows, width] and weight [classes, width], got ", hidden.sizes(),
              " and ", weight.sizes());
  TORCH_CHECK(hidden.scalar_type() == weight.scalar_type() && with_float_type(hidden.scalar_type(), [](auto*) {}),
              "[linear_cross_entropy] expected hidden and weight both to be float32, bfloat16 or float16, got ",
              hidden.scalar_type(), " and ", weight.scalar_type());
  return linear_cross_entropy_kernel(hidden, weight, target_ids, ignore_index);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("linear_cross_entropy(Tensor hidden, Tensor weight, Tensor targets, int ignore_index) -> Tensor");
}

TROUPE_DIFFERENTIABLE_OPERATORS(m) { m.impl("linear_cross_entropy", linear_cross_entropy); }

}  // namespace troupe
