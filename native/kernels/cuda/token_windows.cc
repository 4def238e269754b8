// Windows out of a row of tokens that lies on a GPU: see kernels/cpu/token_windows.cc.
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <tuple>

#include "kernels/register.h"

namespace troupe::cuda {
namespace {

std::tuple<at::Tensor, at::Tensor> token_windows(const at::Tensor& tokens, at::IntArrayRef starts, int64_t length) {
  const at::Tensor host = at::empty({static_cast<int64_t>(starts.size()), 1}, at::kLong);
  std::copy(starts.begin(), starts.end(), host.data_ptr<int64_t>());
  const at::Tensor places = host.to(tokens.device(), /*non_blocking=*/true)
                                .add(at::arange(length + 1, tokens.options().dtype(at::kLong)).unsqueeze(0));
  at::Tensor taken = tokens.index_select(0, places.view({-1})).to(at::kLong).view(places.sizes());
  if (tokens.scalar_type() == at::kShort) taken = taken.bitwise_and(0xFFFF);
  return {taken.narrow(1, 0, length).contiguous(), taken.narrow(1, 1, length).contiguous()};
}

TROUPE_CUDA_KERNEL(token_windows, token_windows);

}  // namespace
}  // namespace troupe::cuda
