// Registers an operator's host part (checks, autograd, coefficients), which is one text for the CPU and for CUDA, and the kernels
// that it calls where the arithmetic begins. A kernel has a function for the CPU and one for CUDA, of one signature.
//
//   kernels/cpu/swiglu.cc      TROUPE_KERNEL(swiglu, apply_swiglu);
//                              swiglu_kernel(gate, up)  // calls the function for the device of its first argument
//                              TROUPE_DIFFERENTIABLE_OPERATORS(m) { m.impl("swiglu", swiglu); }
//   kernels/cuda/elements.cc   TROUPE_CUDA_KERNEL(swiglu, swiglu);
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <cstdint>
#include <utility>

namespace troupe {

// Null in an addon without CUDA. `name` is a hash, for C++17 takes no text there.
template <uint64_t name, class Function>
inline Function* cuda_function = nullptr;

// FNV-1a.
constexpr uint64_t hash_of(const char* text) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (; *text != 0; text++) hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001B3u;
  return hash;
}

// Whether a tensor is for the kernels of CUDA; tests that run these on the host put another function here (test/gpu/on-host).
inline bool (*is_for_cuda)(const at::Tensor&) = [](const at::Tensor& tensor) { return tensor.is_cuda(); };

inline bool lies_on_cuda(const at::Tensor& tensor) { return is_for_cuda(tensor); }
inline bool lies_on_cuda(at::TensorList tensors) { return !tensors.empty() && is_for_cuda(tensors[0]); }

template <uint64_t name, class Function>
struct Kernel;

template <uint64_t name, class Result, class First, class... Rest>
struct Kernel<name, Result(First, Rest...)> {
  const char* text;  // the name
  Result (*on_cpu)(First, Rest...);

  // Throws in an addon without CUDA where `first` lies on a GPU.
  Result operator()(First first, Rest... rest) const {
    if (!lies_on_cuda(first)) return on_cpu(std::forward<First>(first), std::forward<Rest>(rest)...);
    auto* const on_cuda = cuda_function<name, Result(First, Rest...)>;
    TORCH_CHECK(on_cuda != nullptr, "[", text,
                "] expected a kernel for CUDA, got an addon without one (npx troupe doctor tells why)");
    return on_cuda(std::forward<First>(first), std::forward<Rest>(rest)...);
  }
};

}  // namespace troupe

#define TROUPE_KERNEL(name, ...) \
  constexpr troupe::Kernel<troupe::hash_of(#name), decltype(__VA_ARGS__)> name##_kernel { #name, __VA_ARGS__ }

#define TROUPE_CUDA_KERNEL(name, function)                                            \
  [[maybe_unused]] static const bool C10_CONCATENATE(has_##name##_, C10_UID) =        \
      (troupe::cuda_function<troupe::hash_of(#name), decltype(function)> = function)

#define TROUPE_OPERATORS(library) TROUPE_OPERATORS_NAMED(library, C10_CONCATENATE(register_operators_, C10_UID))
#define TROUPE_OPERATORS_NAMED(library, name)                   \
  static void name(torch::Library& library);                    \
  TORCH_LIBRARY_IMPL(troupe, CPU, m) { name(m); }               \
  TORCH_LIBRARY_IMPL(troupe, CUDA, m) { name(m); }              \
  static void name(torch::Library& library)

// The same for operators that call `record` themselves (core/autograd/differentiable.h): they are autograd's too.
#define TROUPE_DIFFERENTIABLE_OPERATORS(library) \
  TROUPE_DIFFERENTIABLE_OPERATORS_NAMED(library, C10_CONCATENATE(register_operators_, C10_UID))
#define TROUPE_DIFFERENTIABLE_OPERATORS_NAMED(library, name)    \
  static void name(torch::Library& library);                    \
  TORCH_LIBRARY_IMPL(troupe, Autograd, m) { name(m); }          \
  TROUPE_OPERATORS_NAMED(library, name)
