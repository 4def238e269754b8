// Attention by libtorch's fused kernels, which choose between flash attention and their own for other formats and masks. Flash
// attention's gradients are recorded here, so that programs of blocks have them; the autograd of the others is libtorch's. On Hopper and
// later cuDNN's forward takes two thirds of flash attention's time; its backward has no order of sums, so flash attention's makes
// the gradients from cuDNN's output and logsumexp. What rows see is made one mask. A query that
// sees nothing gets the mean of all values, as on the CPU: it is made zero and sees all, and its gradient, that of equal scores, is
// added by itself. Where a forward is invariant, its values are those of invariant_attention.cu.
#include "core/torch_version.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#if TROUPE_TORCH_AT_LEAST(2, 7) && !TROUPE_CUDA_ON_HOST
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>
#include <cuda_runtime_api.h>
#endif

#include "core/autograd/differentiable.h"
#include "core/invariance.h"
#include "kernels/cpu/invariant_attention.h"
#include "kernels/cuda/call.h"
#include "kernels/register.h"

namespace troupe::cuda {
namespace {

// exp() of it is 0 beside any score that is seen; float16 ends at 65,504.
double hidden_score(at::ScalarType dtype) { return dtype == at::kHalf ? -30000.0 : -1e30; }

// bool [T, S] of the keys that a query may see by its place: query t stands beside key t + S - T.
at::Tensor seen_by_place(const at::Tensor& q, const at::Tensor& k, bool causal, int64_t window) {
  const auto options = q.options().dtype(at::kLong);
  const at::Tensor query = at::arange(q.size(2), options).add(k.size(2) - q.size(2)).unsqueeze(1);
  const at::Tensor key = at::arange(k.size(2), options).unsqueeze(0);
  at::Tensor seen;
  if (causal) seen = key.le(query);
  if (window > 0) {
    const at::Tensor near = key.gt(query.sub(window));
    seen = seen.defined() ? seen.logical_and(near) : near;
  }
  return seen;
}

// A group's keys for each of its heads.
at::Tensor for_heads(const at::Tensor& x_BGSD, int64_t heads) {
  const int64_t readers = heads / x_BGSD.size(1);
  if (readers == 1) return x_BGSD;
  return x_BGSD.unsqueeze(2)
      .expand({x_BGSD.size(0), x_BGSD.size(1), readers, x_BGSD.size(2), x_BGSD.size(3)})
      .reshape({x_BGSD.size(0), heads, x_BGSD.size(2), x_BGSD.size(3)});
}

// Zeros [B,H,T,D] with the gradient that softmax has where all scores are equal: of the mean over keys of (score - their mean) value,
// values held.
at::Tensor slope_at_equal_scores(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values, const at::Tensor& bias,
                                 double scale) {
  const at::Tensor shares = values.detach().div(keys.size(2));
  const at::Tensor centered = keys.sub(keys.mean(2, /*keepdim=*/true));
  at::Tensor slope = at::matmul(q, at::matmul(centered.transpose(2, 3), shares)).mul(scale);
  if (bias.defined()) slope = slope.add(at::matmul(bias.sub(bias.mean(-1, /*keepdim=*/true)), shares));
  return slope.sub(slope.detach());
}

HeadRows head_rows_of(const at::Tensor& x) { return {x.data_ptr(), x.stride(0), x.stride(1), x.stride(2)}; }

// See kernels/cpu/invariant_attention.h.
at::Tensor attend_rows(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask, const at::Tensor& bias,
                       bool causal, int64_t window, double scale) {
  const Call call(q);
  const auto dense = [](const at::Tensor& x) { return x.stride(3) == 1 ? x : x.contiguous(); };
  const at::Tensor dense_q = dense(q), dense_k = dense(k), dense_v = dense(v);
  const AttentionShape shape{q.size(0), q.size(1), k.size(1), q.size(2), k.size(2), q.size(3)};
  const at::Tensor out_BTHD = at::empty({shape.batches, shape.rows, shape.heads, shape.width}, q.options());
  Sight sight{nullptr, 0, {}, causal, window, static_cast<float>(scale)};
  at::Tensor biases;
  if (bias.defined()) {
    biases = dense(bias.to(at::kFloat)).expand({shape.batches, shape.heads, shape.rows, shape.keys});
    sight.bias = head_rows_of(biases);
  }
  at::Tensor before_BS;
  if (mask.defined()) {
    const at::Tensor seen = mask.expand({mask.size(0), 1, 1, shape.keys}).reshape({mask.size(0), shape.keys}).to(at::kLong);
    before_BS = at::cat({at::zeros({seen.size(0), 1}, seen.options()), seen.cumsum(1)}, 1);
    sight.before = before_BS.data_ptr<int64_t>();
    sight.of_batch = seen.size(0) == 1 ? 0 : before_BS.stride(0);
  }
  const int64_t blocks = std::min(kMostAttending, out_BTHD.numel() == 0 ? 0 : shape.batches * shape.rows * shape.heads);
  const at::Tensor scratch = at::empty({blocks, shape.keys}, q.options().dtype(at::kFloat));
  launch_attend_rows(call.stream(), format_of(q), shape, head_rows_of(dense_q), head_rows_of(dense_k), head_rows_of(dense_v), sight, blocks,
                     floats(scratch), out_BTHD.data_ptr());
  return out_BTHD.transpose(1, 2);
}

// Values of each query's own with the gradients of libtorch's attention, from which they differ by rounding.
template <class AttendRecorded>
at::Tensor attend_invariantly(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask,
                              const at::Tensor& bias, bool causal, int64_t window, double scale,
                              const AttendRecorded& attend_recorded) {
  const at::Tensor own = without_recording([&] { return attend_rows(q, k, v, mask, bias, causal, window, scale); });
  if (!wants_gradient({q, k, v, bias})) return own;
  const Variant quickest;
  const at::Tensor recorded = attend_recorded();
  return own.add(recorded.sub(recorded.detach()));
}

#if TROUPE_TORCH_AT_LEAST(2, 7) && !TROUPE_CUDA_ON_HOST
int compute_capability_of(c10::DeviceIndex device) {
  int major = 0;
  TORCH_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess,
              "[attention] expected CUDA to give the compute capability of cuda:", static_cast<int>(device), ", got an error");
  return major;
}

// cuDNN plans a kernel for each shape, which takes the host longer than a step: only sequences of full tiles are given to it.
bool cudnn_pays(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const int64_t width = q.size(3);
  const bool is_half = q.scalar_type() == at::kBFloat16 || q.scalar_type() == at::kHalf;
  static const bool has_cudnn = at::detail::getCUDAHooks().hasCuDNN();
  return has_cudnn && is_half && q.size(2) == k.size(2) && q.size(2) % 128 == 0 && (width == 64 || width == 128) &&
         v.size(3) == width && k.size(1) == q.size(1) && compute_capability_of(q.get_device()) >= 9;
}

// Whether libtorch would choose flash attention, and would not pad its heads for it.
bool chooses_flash(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal, double scale) {
  constexpr int64_t kFlash = 1;  // of at::SDPBackend
  const int64_t width = q.size(3);
  return width % 8 == 0 && width <= 128 && v.size(3) == width && at::_fused_sdp_choice(q, k, v, {}, 0.0, causal, scale) == kFlash;
}

at::Tensor attention_by_flash(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal, double scale, bool by_cudnn) {
  const bool recorded = wants_gradient({q, k, v});
  // Lengths of queries and keys, and the place of random numbers: of no use here, but flash attention's gradients ask for them.
  at::Tensor out, logsumexp, of_queries, of_keys, seed, offset;
  without_recording([&] {
    if (by_cudnn) {
      const auto made = at::_scaled_dot_product_cudnn_attention(q, k, v, {}, /*compute_log_sumexp=*/recorded, 0.0, causal, false, scale);
      out = std::get<0>(made);
      if (!recorded) return;
      logsumexp = std::get<1>(made).reshape({q.size(0), q.size(1), q.size(2)});
      of_queries = of_keys = seed = offset = at::empty({0}, q.options().dtype(at::kLong));
    } else {
      const auto made = at::_scaled_dot_product_flash_attention(q, k, v, 0.0, causal, false, scale);
      out = std::get<0>(made);
      logsumexp = std::get<1>(made);
      of_queries = std::get<2>(made);
      of_keys = std::get<3>(made);
      seed = std::get<6>(made);
      offset = std::get<7>(made);
    }
  });
  if (!recorded) return out;
  record("attention", {q, k, v}, {out}, {q, k, v, out, logsumexp, of_queries, of_keys, seed, offset},
         [causal, scale](const Tensors& gradients, const Tensors& saved) -> Tensors {
           const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_backward(
               gradients[0], saved[0], saved[1], saved[2], saved[3], saved[4], saved[5], saved[6], saved[0].size(2), saved[1].size(2),
               0.0, causal, saved[7], saved[8], scale);
           return {dq, dk, dv};
         });
  return out;
}
#endif

at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal, double scale) {
#if TROUPE_TORCH_AT_LEAST(2, 7) && !TROUPE_CUDA_ON_HOST
  const bool by_cudnn = cudnn_pays(q, k, v);
  if (by_cudnn || chooses_flash(q, k, v, causal, scale)) return attention_by_flash(q, k, v, causal, scale, by_cudnn);
#endif
  return at::scaled_dot_product_attention(q, k, v, {}, 0.0, causal, scale);
}

at::Tensor attend_masked(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const c10::optional<at::Tensor>& mask,
                         const c10::optional<at::Tensor>& bias, bool causal, int64_t window, double scale) {
  const int64_t heads = q.size(1);
  const at::Tensor keys = for_heads(k, heads), values = for_heads(v, heads);
  const bool one_query = q.size(2) == 1 && window == 0;  // it stands last, and sees all
  const bool square = q.size(2) == k.size(2) && window == 0;
  if (!mask && !bias && (!causal || one_query || square)) {
    return attend(q, keys, values, causal && !one_query, scale);
  }
  at::Tensor seen = seen_by_place(q, k, causal && !one_query, window);
  if (mask) seen = seen.defined() ? mask->logical_and(seen) : *mask;
  const at::ScalarType dtype = q.scalar_type();
  const at::Tensor biases = bias ? bias->to(dtype) : at::Tensor();
  at::Tensor added = biases, queries = q, blind;
  if (seen.defined()) {
    blind = seen.any(-1, /*keepdim=*/true).logical_not();
    const at::Tensor none = at::scalar_tensor(0.0, q.options()), hidden = at::scalar_tensor(hidden_score(dtype), q.options());
    added = at::where(blind, none, at::where(seen, added.defined() ? added : none, hidden));
    queries = q.masked_fill(blind, 0);
  }
  while (added.dim() < 4) added = added.unsqueeze(0);
  added = added.expand({q.size(0), heads, q.size(2), k.size(2)});
  const at::Tensor attended = at::scaled_dot_product_attention(queries, keys, values, added, 0.0, false, scale);
  // The first of more queries than keys stand before all keys. A mask that all queries share hides every key of a query only if the row is
  // nothing but padding.
  const bool may_be_blind = (causal && q.size(2) > k.size(2)) || (mask && seen.size(-2) > 1);
  if (!may_be_blind || !wants_gradient({q, k, biases})) return attended;
  return attended.add(slope_at_equal_scores(q, keys, values, biases, scale).masked_fill(blind.logical_not(), 0));
}

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal, double scale) {
  const auto recorded = [&] { return attend(q, k, v, causal, scale); };
  return is_invariant() ? attend_invariantly(q, k, v, {}, {}, causal, 0, scale, recorded) : recorded();
}

at::Tensor masked_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const c10::optional<at::Tensor>& mask,
                            const c10::optional<at::Tensor>& bias, bool causal, int64_t window, double scale) {
  if (k.size(2) == 0) return at::zeros_like(q);
  const auto recorded = [&] { return attend_masked(q, k, v, mask, bias, causal, window, scale); };
  if (!is_invariant()) return recorded();
  const at::Tensor seen = mask.value_or(at::Tensor());
  check_invariant_attention(seen);
  return attend_invariantly(q, k, v, seen, bias.value_or(at::Tensor()), causal, window, scale, recorded);
}

TROUPE_CUDA_KERNEL(attention, attention);
TROUPE_CUDA_KERNEL(masked_attention, masked_attention);

}  // namespace
}  // namespace troupe::cuda
