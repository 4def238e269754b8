// Coefficients that all elements of a segment share in the fused optimizer steps, rounded to float once; each kind of step has
// a type of its own.
#pragma once

#include <type_traits>

namespace troupe {

struct AdamNumbers {
  float keep;          // 1 - lr * weight_decay
  float decay;         // weight_decay, or lr * weight_decay in BMTrain's form
  float beta1;
  float beta1_rest;    // 1 - beta1
  float beta2;
  float beta2_rest;    // 1 - beta2
  float correction1;   // 1 - beta1^step
  float correction2;   // 1 - beta2^step
  float root_scale;    // sqrt(1 - beta2^step)
  float eps;
  float lr;
  float step_size;     // lr / (1 - beta1^step)
  float grad_scale;
};
struct AdamWCoefficients : AdamNumbers {};
struct AdamCoefficients : AdamNumbers {};
struct BMTrainAdamCoefficients : AdamNumbers {};

struct SgdCoefficients {
  float lr;
  float decay;
  float momentum;
  float rest;  // 1 - dampening; 1 at the first step
  float grad_scale;
  bool nesterov;
};

struct LionCoefficients {
  float keep;  // 1 - lr * weight_decay
  float lr;
  float beta1, beta1_rest, beta2, beta2_rest;
  float grad_scale;
};

struct LambCoefficients {
  float beta1_rest, beta2, beta2_rest, correction1, correction2, eps, decay, grad_scale;
};

struct AlongCoefficients {
  float rate, keep;
};

struct BlendCoefficients {
  float rate, beta, rest;
};

struct SecondMomentCoefficients {
  float beta2, beta2_rest, eps, grad_scale;
};

template <class Coefficients, class = void>
constexpr bool has_grad_scale = false;
template <class Coefficients>
constexpr bool has_grad_scale<Coefficients, std::void_t<decltype(Coefficients::grad_scale)>> = true;

}  // namespace troupe
