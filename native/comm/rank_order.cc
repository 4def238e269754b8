#include "comm/rank_order.h"

#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>

#include <algorithm>
#include <type_traits>

#include "core/dispatch/describe.h"
#include "core/error.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"

namespace troupe::comm {
namespace {

constexpr int64_t kBlock = 2048;  // its accumulators stay in the first-level cache while the ranks are added to them

template <class Element>
using Accumulator = std::conditional_t<std::is_integral_v<Element>, int64_t,
                                       std::conditional_t<std::is_same_v<Element, double>, double, float>>;

template <class Element>
constexpr bool kHasFormat = !std::is_integral_v<Element> && !std::is_same_v<Element, double>;

template <class Element>
TROUPE_INLINE Accumulator<Element> widen(const Element* from, int64_t i) {
  if constexpr (kHasFormat<Element>) {
    return load(from, i);
  } else {
    return static_cast<Accumulator<Element>>(from[i]);
  }
}

template <class Element>
TROUPE_INLINE void narrow(Element* to, int64_t i, Accumulator<Element> value) {
  if constexpr (kHasFormat<Element>) {
    store(to, i, value);
  } else {
    to[i] = static_cast<Element>(value);
  }
}

template <Reduction reduction, class Number>
TROUPE_INLINE Number combine(Number a, Number b) {
  if constexpr (reduction == Reduction::max) return (a > b) | (a != a) ? a : b;
  if constexpr (reduction == Reduction::min) return (a < b) | (a != a) ? a : b;
  // Integers wrap, as in libtorch.
  using Wrapping = std::conditional_t<std::is_integral_v<Number>, uint64_t, Number>;
  const auto x = static_cast<Wrapping>(a), y = static_cast<Wrapping>(b);
  if constexpr (reduction == Reduction::prod) return static_cast<Number>(x * y);
  return static_cast<Number>(x + y);
}

template <class Element, Reduction reduction>
struct ReduceBlock {
  static TROUPE_INLINE void run(const void* const* sources, int64_t num_sources, void* const* destinations,
                                int64_t num_destinations, int64_t begin, int64_t length) {
    using Number = Accumulator<Element>;
    Number sums[kBlock];
    const Element* first = static_cast<const Element*>(sources[0]) + begin;
    for (int64_t i = 0; i < length; i++) sums[i] = widen(first, i);
    for (int64_t rank = 1; rank < num_sources; rank++) {
      const Element* from = static_cast<const Element*>(sources[rank]) + begin;
      for (int64_t i = 0; i < length; i++) sums[i] = combine<reduction>(sums[i], widen(from, i));
    }
    if constexpr (reduction == Reduction::avg) {
      const Number count = static_cast<Number>(num_sources);
      for (int64_t i = 0; i < length; i++) sums[i] = sums[i] / count;
    }
    for (int64_t copy = 0; copy < num_destinations; copy++) {
      Element* to = static_cast<Element*>(destinations[copy]) + begin;
      for (int64_t i = 0; i < length; i++) narrow(to, i, sums[i]);
    }
  }
};

template <class Element, Reduction reduction>
void reduce(const std::vector<const void*>& sources, const std::vector<void*>& destinations, int64_t numel) {
  for (int64_t begin = 0; begin < numel; begin += kBlock) {
    run_best<ReduceBlock<Element, reduction>>(sources.data(), static_cast<int64_t>(sources.size()), destinations.data(),
                                              static_cast<int64_t>(destinations.size()), begin,
                                              std::min(kBlock, numel - begin));
  }
}

template <class Element>
void reduce_by(Reduction reduction, const std::vector<const void*>& sources, const std::vector<void*>& destinations,
               int64_t numel) {
  switch (reduction) {
    case Reduction::sum: return reduce<Element, Reduction::sum>(sources, destinations, numel);
    case Reduction::avg:
      // Averages of integers are refused before.
      if constexpr (!std::is_integral_v<Element>) return reduce<Element, Reduction::avg>(sources, destinations, numel);
      break;
    case Reduction::max: return reduce<Element, Reduction::max>(sources, destinations, numel);
    case Reduction::min: return reduce<Element, Reduction::min>(sources, destinations, numel);
    case Reduction::prod: return reduce<Element, Reduction::prod>(sources, destinations, numel);
  }
}

}  // namespace

void reduce_in_rank_order(c10::ScalarType dtype, Reduction reduction, const std::vector<const void*>& sources,
                          const std::vector<void*>& destinations, int64_t numel) {
  switch (dtype) {
    case c10::ScalarType::Float: return reduce_by<float>(reduction, sources, destinations, numel);
    case c10::ScalarType::BFloat16: return reduce_by<c10::BFloat16>(reduction, sources, destinations, numel);
    case c10::ScalarType::Half: return reduce_by<c10::Half>(reduction, sources, destinations, numel);
    case c10::ScalarType::Double: return reduce_by<double>(reduction, sources, destinations, numel);
    case c10::ScalarType::Long: return reduce_by<int64_t>(reduction, sources, destinations, numel);
    case c10::ScalarType::Int: return reduce_by<int32_t>(reduction, sources, destinations, numel);
    case c10::ScalarType::Short: return reduce_by<int16_t>(reduction, sources, destinations, numel);
    case c10::ScalarType::Char: return reduce_by<int8_t>(reduction, sources, destinations, numel);
    case c10::ScalarType::Byte:
    case c10::ScalarType::Bool: return reduce_by<uint8_t>(reduction, sources, destinations, numel);
    default:
      throw CodedError("COLLECTIVE_ARGUMENT", "[reduce] expected a dtype of src/compute/tensor, got " + dtype_name(dtype));
  }
}

namespace {

at::Tensor widened(const at::Tensor& source) {
  const c10::ScalarType dtype = source.scalar_type();
  return dtype == at::kHalf || dtype == at::kBFloat16 ? source.to(at::kFloat) : source;
}

at::Tensor combined(Reduction reduction, const at::Tensor& a, const at::Tensor& b) {
  switch (reduction) {
    case Reduction::max: return at::maximum(a, b);
    case Reduction::min: return at::minimum(a, b);
    case Reduction::prod: return a.mul(b);
    default: return a.add(b);
  }
}

void reduce_with_operators(Reduction reduction, const std::vector<at::Tensor>& sources, const at::Tensor& destination) {
  at::Tensor result = widened(sources[0]);
  for (size_t rank = 1; rank < sources.size(); rank++) result = combined(reduction, result, widened(sources[rank]));
  if (reduction == Reduction::avg) result = result.div(static_cast<double>(sources.size()));
  destination.copy_(result);
}

}  // namespace

void reduce_tensors(Reduction reduction, const std::vector<at::Tensor>& sources, const at::Tensor& destination) {
  if (!destination.is_cpu()) return reduce_with_operators(reduction, sources, destination);
  std::vector<const void*> from;
  for (const at::Tensor& source : sources) from.push_back(source.data_ptr());
  reduce_in_rank_order(destination.scalar_type(), reduction, from, {destination.data_ptr()}, destination.numel());
}

}  // namespace troupe::comm
