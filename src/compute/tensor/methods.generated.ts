// Written by scripts/generate-ops.ts from scripts/operators/operators.txt and the schemas of libtorch 2.13.0.

import type { DType } from "./dtype.ts";
import * as ops from "./ops.generated.ts";
import { Tensor } from "./tensor.ts";
import * as troupe from "./troupe.generated.ts";

/** The operators whose first argument is `self`, as methods of {@link Tensor}. */
export interface OperatorMethods {
  /**
   * self + alpha · other, broadcasting.
   *
   * `aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`
   * `aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor`
   */
  add(other: Tensor | number, alpha?: number): Tensor;
  /**
   * self + alpha · other, broadcasting, in place.
   *
   * `aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)`
   * `aten::add_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)`
   */
  add_(other: Tensor | number, alpha?: number): Tensor;
  /**
   * self − alpha · other, broadcasting.
   *
   * `aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`
   * `aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor`
   */
  sub(other: Tensor | number, alpha?: number): Tensor;
  /**
   * self − alpha · other, broadcasting, in place.
   *
   * `aten::sub_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)`
   * `aten::sub_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)`
   */
  sub_(other: Tensor | number, alpha?: number): Tensor;
  /**
   * other − alpha · self, broadcasting.
   *
   * `aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`
   * `aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor`
   */
  rsub(other: Tensor | number, alpha?: number): Tensor;
  /**
   * self · other, broadcasting.
   *
   * `aten::mul.Tensor(Tensor self, Tensor other) -> Tensor`
   * `aten::mul.Scalar(Tensor self, Scalar other) -> Tensor`
   */
  mul(other: Tensor | number): Tensor;
  /**
   * self · other, broadcasting, in place.
   *
   * `aten::mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)`
   * `aten::mul_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)`
   */
  mul_(other: Tensor | number): Tensor;
  /**
   * self / other, broadcasting; integers give floats.
   *
   * `aten::div.Tensor(Tensor self, Tensor other) -> Tensor`
   * `aten::div.Scalar(Tensor self, Scalar other) -> Tensor`
   */
  div(other: Tensor | number): Tensor;
  /**
   * self / other, broadcasting; integers give floats, in place.
   *
   * `aten::div_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)`
   * `aten::div_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)`
   */
  div_(other: Tensor | number): Tensor;
  /**
   * ⌊self / other⌋.
   *
   * `aten::floor_divide(Tensor self, Tensor other) -> Tensor`
   * `aten::floor_divide.Scalar(Tensor self, Scalar other) -> Tensor`
   */
  floorDivide(other: Tensor | number): Tensor;
  /**
   * Remainder of self / other with the sign of other.
   *
   * `aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor`
   * `aten::remainder.Scalar(Tensor self, Scalar other) -> Tensor`
   */
  remainder(other: Tensor | number): Tensor;
  /**
   * Remainder of self / other with the sign of self.
   *
   * `aten::fmod.Tensor(Tensor self, Tensor other) -> Tensor`
   * `aten::fmod.Scalar(Tensor self, Scalar other) -> Tensor`
   */
  fmod(other: Tensor | number): Tensor;
  /**
   * −self.
   *
   * `aten::neg(Tensor self) -> Tensor`
   */
  neg(): Tensor;
  /**
   * −self, in place.
   *
   * `aten::neg_(Tensor(a!) self) -> Tensor(a!)`
   */
  neg_(): Tensor;
  /**
   * Absolute value.
   *
   * `aten::abs(Tensor self) -> Tensor`
   */
  abs(): Tensor;
  /**
   * Absolute value, in place.
   *
   * `aten::abs_(Tensor(a!) self) -> Tensor(a!)`
   */
  abs_(): Tensor;
  /**
   * −1, 0 or 1 by the sign.
   *
   * `aten::sign(Tensor self) -> Tensor`
   */
  sign(): Tensor;
  /**
   * 1 / self.
   *
   * `aten::reciprocal(Tensor self) -> Tensor`
   */
  reciprocal(): Tensor;
  /**
   * 1 / self, in place.
   *
   * `aten::reciprocal_(Tensor(a!) self) -> Tensor(a!)`
   */
  reciprocal_(): Tensor;
  /**
   * self².
   *
   * `aten::square(Tensor self) -> Tensor`
   */
  square(): Tensor;
  /**
   * self², in place.
   *
   * `aten::square_(Tensor(a!) self) -> Tensor(a!)`
   */
  square_(): Tensor;
  /**
   * Square root.
   *
   * `aten::sqrt(Tensor self) -> Tensor`
   */
  sqrt(): Tensor;
  /**
   * Square root, in place.
   *
   * `aten::sqrt_(Tensor(a!) self) -> Tensor(a!)`
   */
  sqrt_(): Tensor;
  /**
   * 1 / √self.
   *
   * `aten::rsqrt(Tensor self) -> Tensor`
   */
  rsqrt(): Tensor;
  /**
   * 1 / √self, in place.
   *
   * `aten::rsqrt_(Tensor(a!) self) -> Tensor(a!)`
   */
  rsqrt_(): Tensor;
  /**
   * self to the power of exponent.
   *
   * `aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor`
   * `aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor`
   */
  pow(exponent: Tensor | number): Tensor;
  /**
   * self to the power of exponent, in place.
   *
   * `aten::pow_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)`
   * `aten::pow_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)`
   */
  pow_(exponent: Tensor | number): Tensor;
  /**
   * eˣ.
   *
   * `aten::exp(Tensor self) -> Tensor`
   */
  exp(): Tensor;
  /**
   * eˣ, in place.
   *
   * `aten::exp_(Tensor(a!) self) -> Tensor(a!)`
   */
  exp_(): Tensor;
  /**
   * 2ˣ.
   *
   * `aten::exp2(Tensor self) -> Tensor`
   */
  exp2(): Tensor;
  /**
   * eˣ − 1, exact near 0.
   *
   * `aten::expm1(Tensor self) -> Tensor`
   */
  expm1(): Tensor;
  /**
   * Natural logarithm.
   *
   * `aten::log(Tensor self) -> Tensor`
   */
  log(): Tensor;
  /**
   * Natural logarithm, in place.
   *
   * `aten::log_(Tensor(a!) self) -> Tensor(a!)`
   */
  log_(): Tensor;
  /**
   * ln(1 + self), exact near 0.
   *
   * `aten::log1p(Tensor self) -> Tensor`
   */
  log1p(): Tensor;
  /**
   * Logarithm to base 2.
   *
   * `aten::log2(Tensor self) -> Tensor`
   */
  log2(): Tensor;
  /**
   * Logarithm to base 10.
   *
   * `aten::log10(Tensor self) -> Tensor`
   */
  log10(): Tensor;
  /**
   * ln(eˢᵉˡᶠ + eᵒᵗʰᵉʳ) without overflow.
   *
   * `aten::logaddexp(Tensor self, Tensor other) -> Tensor`
   */
  logaddexp(other: Tensor): Tensor;
  /**
   * Sine, radians.
   *
   * `aten::sin(Tensor self) -> Tensor`
   */
  sin(): Tensor;
  /**
   * Cosine, radians.
   *
   * `aten::cos(Tensor self) -> Tensor`
   */
  cos(): Tensor;
  /**
   * Error function.
   *
   * `aten::erf(Tensor self) -> Tensor`
   */
  erf(): Tensor;
  /**
   * Largest integer not above.
   *
   * `aten::floor(Tensor self) -> Tensor`
   */
  floor(): Tensor;
  /**
   * Largest integer not above, in place.
   *
   * `aten::floor_(Tensor(a!) self) -> Tensor(a!)`
   */
  floor_(): Tensor;
  /**
   * Smallest integer not below.
   *
   * `aten::ceil(Tensor self) -> Tensor`
   */
  ceil(): Tensor;
  /**
   * Smallest integer not below, in place.
   *
   * `aten::ceil_(Tensor(a!) self) -> Tensor(a!)`
   */
  ceil_(): Tensor;
  /**
   * Nearest integer, halves to even.
   *
   * `aten::round(Tensor self) -> Tensor`
   */
  round(): Tensor;
  /**
   * Nearest integer, halves to even, in place.
   *
   * `aten::round_(Tensor(a!) self) -> Tensor(a!)`
   */
  round_(): Tensor;
  /**
   * Integer part.
   *
   * `aten::trunc(Tensor self) -> Tensor`
   */
  trunc(): Tensor;
  /**
   * Fractional part.
   *
   * `aten::frac(Tensor self) -> Tensor`
   */
  frac(): Tensor;
  /**
   * Limits each element to [min, max]; an absent limit is none.
   *
   * `aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor`
   */
  clamp(min?: number, max?: number): Tensor;
  /**
   * Limits each element to [min, max]; an absent limit is none, in place.
   *
   * `aten::clamp_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor(a!)`
   */
  clamp_(min?: number, max?: number): Tensor;
  /**
   * max(self, min).
   *
   * `aten::clamp_min(Tensor self, Scalar min) -> Tensor`
   * `aten::clamp_min.Tensor(Tensor self, Tensor min) -> Tensor`
   */
  clampMin(min: number | Tensor): Tensor;
  /**
   * max(self, min), in place.
   *
   * `aten::clamp_min_(Tensor(a!) self, Scalar min) -> Tensor(a!)`
   * `aten::clamp_min_.Tensor(Tensor(a!) self, Tensor min) -> Tensor(a!)`
   */
  clampMin_(min: number | Tensor): Tensor;
  /**
   * min(self, max).
   *
   * `aten::clamp_max(Tensor self, Scalar max) -> Tensor`
   * `aten::clamp_max.Tensor(Tensor self, Tensor max) -> Tensor`
   */
  clampMax(max: number | Tensor): Tensor;
  /**
   * min(self, max), in place.
   *
   * `aten::clamp_max_(Tensor(a!) self, Scalar max) -> Tensor(a!)`
   * `aten::clamp_max_.Tensor(Tensor(a!) self, Tensor max) -> Tensor(a!)`
   */
  clampMax_(max: number | Tensor): Tensor;
  /**
   * Elementwise larger of two tensors.
   *
   * `aten::maximum(Tensor self, Tensor other) -> Tensor`
   */
  maximum(other: Tensor): Tensor;
  /**
   * Elementwise smaller of two tensors.
   *
   * `aten::minimum(Tensor self, Tensor other) -> Tensor`
   */
  minimum(other: Tensor): Tensor;
  /**
   * self + value · tensor1 · tensor2.
   *
   * `aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor`
   */
  addcmul(tensor1: Tensor, tensor2: Tensor, value?: number): Tensor;
  /**
   * self + value · tensor1 · tensor2, in place.
   *
   * `aten::addcmul_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)`
   */
  addcmul_(tensor1: Tensor, tensor2: Tensor, value?: number): Tensor;
  /**
   * self + value · tensor1 / tensor2.
   *
   * `aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor`
   */
  addcdiv(tensor1: Tensor, tensor2: Tensor, value?: number): Tensor;
  /**
   * self + value · tensor1 / tensor2, in place.
   *
   * `aten::addcdiv_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)`
   */
  addcdiv_(tensor1: Tensor, tensor2: Tensor, value?: number): Tensor;
  /**
   * self + weight · (end − self).
   *
   * `aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor`
   * `aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor`
   */
  lerp(end: Tensor, weight: number | Tensor): Tensor;
  /**
   * self + weight · (end − self), in place.
   *
   * `aten::lerp_.Scalar(Tensor(a!) self, Tensor end, Scalar weight) -> Tensor(a!)`
   * `aten::lerp_.Tensor(Tensor(a!) self, Tensor end, Tensor weight) -> Tensor(a!)`
   */
  lerp_(end: Tensor, weight: number | Tensor): Tensor;
  /**
   * Replaces NaN and infinities by numbers.
   *
   * `aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor`
   */
  nanToNum(nan?: number, posinf?: number, neginf?: number): Tensor;
  /**
   * Replaces NaN and infinities by numbers, in place.
   *
   * `aten::nan_to_num_(Tensor(a!) self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor(a!)`
   */
  nanToNum_(nan?: number, posinf?: number, neginf?: number): Tensor;
  /**
   * Where elements are NaN.
   *
   * `aten::isnan(Tensor self) -> Tensor`
   */
  isnan(): Tensor;
  /**
   * Where elements are infinite.
   *
   * `aten::isinf(Tensor self) -> Tensor`
   */
  isinf(): Tensor;
  /**
   * Where elements are finite.
   *
   * `aten::isfinite(Tensor self) -> Tensor`
   */
  isfinite(): Tensor;
  /**
   * max(self, 0).
   *
   * `aten::relu(Tensor self) -> Tensor`
   */
  relu(): Tensor;
  /**
   * max(self, 0), in place.
   *
   * `aten::relu_(Tensor(a!) self) -> Tensor(a!)`
   */
  relu_(): Tensor;
  /**
   * Gaussian error linear unit; approximate: "none" or "tanh" (Hendrycks & Gimpel 2016).
   *
   * `aten::gelu(Tensor self, *, str approximate="none") -> Tensor`
   */
  gelu(approximate?: string): Tensor;
  /**
   * Gaussian error linear unit; approximate: "none" or "tanh" (Hendrycks & Gimpel 2016), in place.
   *
   * `aten::gelu_(Tensor(a!) self, *, str approximate="none") -> Tensor(a!)`
   */
  gelu_(approximate?: string): Tensor;
  /**
   * self · sigmoid(self), also called swish.
   *
   * `aten::silu(Tensor self) -> Tensor`
   */
  silu(): Tensor;
  /**
   * self · sigmoid(self), also called swish, in place.
   *
   * `aten::silu_(Tensor(a!) self) -> Tensor(a!)`
   */
  silu_(): Tensor;
  /**
   * self · tanh(softplus(self)).
   *
   * `aten::mish(Tensor self) -> Tensor`
   */
  mish(): Tensor;
  /**
   * 1 / (1 + e⁻ˣ).
   *
   * `aten::sigmoid(Tensor self) -> Tensor`
   */
  sigmoid(): Tensor;
  /**
   * 1 / (1 + e⁻ˣ), in place.
   *
   * `aten::sigmoid_(Tensor(a!) self) -> Tensor(a!)`
   */
  sigmoid_(): Tensor;
  /**
   * ln sigmoid(self) without overflow.
   *
   * `aten::log_sigmoid(Tensor self) -> Tensor`
   */
  logSigmoid(): Tensor;
  /**
   * Hyperbolic tangent.
   *
   * `aten::tanh(Tensor self) -> Tensor`
   */
  tanh(): Tensor;
  /**
   * Hyperbolic tangent, in place.
   *
   * `aten::tanh_(Tensor(a!) self) -> Tensor(a!)`
   */
  tanh_(): Tensor;
  /**
   * ln(1 + eᵝˣ) / β.
   *
   * `aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor`
   */
  softplus(beta?: number, threshold?: number): Tensor;
  /**
   * self where positive, else alpha · (eˣ − 1).
   *
   * `aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor`
   */
  elu(alpha?: number, scale?: number, inputScale?: number): Tensor;
  /**
   * self where positive, else negativeSlope · self.
   *
   * `aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor`
   */
  leakyRelu(negativeSlope?: number): Tensor;
  /**
   * Limits to [minVal, maxVal].
   *
   * `aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor`
   */
  hardtanh(minVal?: number, maxVal?: number): Tensor;
  /**
   * Piecewise linear sigmoid.
   *
   * `aten::hardsigmoid(Tensor self) -> Tensor`
   */
  hardsigmoid(): Tensor;
  /**
   * self · hardsigmoid(self).
   *
   * `aten::hardswish(Tensor self) -> Tensor`
   */
  hardswish(): Tensor;
  /**
   * Limits to [0, 6].
   *
   * `aten::relu6(Tensor self) -> Tensor`
   */
  relu6(): Tensor;
  /**
   * First half of dim times the sigmoid of the second half (Dauphin et al. 2017).
   *
   * `aten::glu(Tensor self, int dim=-1) -> Tensor`
   */
  glu(dim?: number): Tensor;
  /**
   * eˣ / Σ eˣ over dim.
   *
   * `aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor`
   */
  softmax(dim: number, dtype?: DType): Tensor;
  /**
   * ln softmax over dim, without overflow.
   *
   * `aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor`
   */
  logSoftmax(dim: number, dtype?: DType): Tensor;
  /**
   * Where self = other.
   *
   * `aten::eq.Tensor(Tensor self, Tensor other) -> Tensor`
   * `aten::eq.Scalar(Tensor self, Scalar other) -> Tensor`
   */
  eq(other: Tensor | number): Tensor;
  /**
   * Where self = other, in place.
   *
   * `aten::eq_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)`
   * `aten::eq_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)`
   */
  eq_(other: Tensor | number): Tensor;
  /**
   * Where self ≠ other.
   *
   * `aten::ne.Tensor(Tensor self, Tensor other) -> Tensor`
   * `aten::ne.Scalar(Tensor self, Scalar other) -> Tensor`
   */
  ne(other: Tensor | number): Tensor;
  /**
   * Where self < other.
   *
   * `aten::lt.Tensor(Tensor self, Tensor other) -> Tensor`
   * `aten::lt.Scalar(Tensor self, Scalar other) -> Tensor`
   */
  lt(other: Tensor | number): Tensor;
  /**
   * Where self ≤ other.
   *
   * `aten::le.Tensor(Tensor self, Tensor other) -> Tensor`
   * `aten::le.Scalar(Tensor self, Scalar other) -> Tensor`
   */
  le(other: Tensor | number): Tensor;
  /**
   * Where self > other.
   *
   * `aten::gt.Tensor(Tensor self, Tensor other) -> Tensor`
   * `aten::gt.Scalar(Tensor self, Scalar other) -> Tensor`
   */
  gt(other: Tensor | number): Tensor;
  /**
   * Where self ≥ other.
   *
   * `aten::ge.Tensor(Tensor self, Tensor other) -> Tensor`
   * `aten::ge.Scalar(Tensor self, Scalar other) -> Tensor`
   */
  ge(other: Tensor | number): Tensor;
  /**
   * Elementwise and.
   *
   * `aten::logical_and(Tensor self, Tensor other) -> Tensor`
   */
  logicalAnd(other: Tensor): Tensor;
  /**
   * Elementwise and, in place.
   *
   * `aten::logical_and_(Tensor(a!) self, Tensor other) -> Tensor(a!)`
   */
  logicalAnd_(other: Tensor): Tensor;
  /**
   * Elementwise or.
   *
   * `aten::logical_or(Tensor self, Tensor other) -> Tensor`
   */
  logicalOr(other: Tensor): Tensor;
  /**
   * Elementwise or, in place.
   *
   * `aten::logical_or_(Tensor(a!) self, Tensor other) -> Tensor(a!)`
   */
  logicalOr_(other: Tensor): Tensor;
  /**
   * Elementwise exclusive or.
   *
   * `aten::logical_xor(Tensor self, Tensor other) -> Tensor`
   */
  logicalXor(other: Tensor): Tensor;
  /**
   * Elementwise not.
   *
   * `aten::logical_not(Tensor self) -> Tensor`
   */
  logicalNot(): Tensor;
  /**
   * Elementwise not, in place.
   *
   * `aten::logical_not_(Tensor(a!) self) -> Tensor(a!)`
   */
  logicalNot_(): Tensor;
  /**
   * Bitwise and of integers, and of bools.
   *
   * `aten::bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor`
   * `aten::bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor`
   */
  bitwiseAnd(other: Tensor | number): Tensor;
  /**
   * Bitwise or of integers, or of bools.
   *
   * `aten::bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor`
   * `aten::bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor`
   */
  bitwiseOr(other: Tensor | number): Tensor;
  /**
   * Bitwise exclusive or.
   *
   * `aten::bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor`
   * `aten::bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor`
   */
  bitwiseXor(other: Tensor | number): Tensor;
  /**
   * Bitwise complement of integers, not of bools.
   *
   * `aten::bitwise_not(Tensor self) -> Tensor`
   */
  bitwiseNot(): Tensor;
  /**
   * Whether shapes and all elements are the same.
   *
   * `aten::equal(Tensor self, Tensor other) -> bool`
   */
  equal(other: Tensor): boolean;
  /**
   * Where |self − other| ≤ atol + rtol · |other|.
   *
   * `aten::isclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool equal_nan=False) -> Tensor`
   */
  isclose(other: Tensor, rtol?: number, atol?: number, equalNan?: boolean): Tensor;
  /**
   * Whether isclose holds everywhere.
   *
   * `aten::allclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool equal_nan=False) -> bool`
   */
  allclose(other: Tensor, rtol?: number, atol?: number, equalNan?: boolean): boolean;
  /**
   * Whether any element is true (0-dim bool tensor).
   *
   * `aten::any(Tensor self) -> Tensor`
   */
  any(): Tensor;
  /**
   * Whether any element along dim is true.
   *
   * `aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor`
   */
  anyDim(dim: number, keepdim?: boolean): Tensor;
  /**
   * Whether every element is true (0-dim bool tensor).
   *
   * `aten::all(Tensor self) -> Tensor`
   */
  all(): Tensor;
  /**
   * Whether every element along dim is true.
   *
   * `aten::all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor`
   */
  allDim(dim: number, keepdim?: boolean): Tensor;
  /**
   * Sum over dim, or over all when dim is undefined.
   *
   * `aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor`
   */
  sum(dim?: number | readonly number[], keepdim?: boolean, dtype?: DType): Tensor;
  /**
   * Mean over dim, or over all when dim is undefined.
   *
   * `aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor`
   */
  mean(dim?: number | readonly number[], keepdim?: boolean, dtype?: DType): Tensor;
  /**
   * Product of all elements.
   *
   * `aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor`
   */
  prod(dtype?: DType): Tensor;
  /**
   * Product along dim.
   *
   * `aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor`
   */
  prodDim(dim: number, keepdim?: boolean, dtype?: DType): Tensor;
  /**
   * Largest elements over dim; all when dim is [].
   *
   * `aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor`
   */
  amax(dim?: number | readonly number[], keepdim?: boolean): Tensor;
  /**
   * Smallest elements over dim; all when dim is [].
   *
   * `aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor`
   */
  amin(dim?: number | readonly number[], keepdim?: boolean): Tensor;
  /**
   * Largest element (0-dim).
   *
   * `aten::max(Tensor self) -> Tensor`
   */
  max(): Tensor;
  /**
   * Smallest element (0-dim).
   *
   * `aten::min(Tensor self) -> Tensor`
   */
  min(): Tensor;
  /**
   * Largest elements along dim and their positions.
   *
   * `aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)`
   */
  maxDim(dim: number, keepdim?: boolean): [values: Tensor, indices: Tensor];
  /**
   * Smallest elements along dim and their positions.
   *
   * `aten::min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)`
   */
  minDim(dim: number, keepdim?: boolean): [values: Tensor, indices: Tensor];
  /**
   * Position of the largest element, along dim or in the flattened tensor.
   *
   * `aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor`
   */
  argmax(dim?: number, keepdim?: boolean): Tensor;
  /**
   * Position of the smallest element, along dim or in the flattened tensor.
   *
   * `aten::argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor`
   */
  argmin(dim?: number, keepdim?: boolean): Tensor;
  /**
   * Standard deviation over dim; correction 1 unless given.
   *
   * `aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor`
   */
  std(dim?: number | readonly number[], correction?: number, keepdim?: boolean): Tensor;
  /**
   * Variance over dim; correction 1 unless given.
   *
   * `aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor`
   */
  variance(dim?: number | readonly number[], correction?: number, keepdim?: boolean): Tensor;
  /**
   * Variance and mean over dim.
   *
   * `aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)`
   */
  varMean(dim?: number | readonly number[], correction?: number, keepdim?: boolean): [result0: Tensor, result1: Tensor];
  /**
   * ln Σ eˣ over dim without overflow.
   *
   * `aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor`
   */
  logsumexp(dim: number | readonly number[], keepdim?: boolean): Tensor;
  /**
   * Norm of order ord over dim, or over all.
   *
   * `aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor`
   */
  linalgVectorNorm(ord?: number, dim?: number | readonly number[], keepdim?: boolean, dtype?: DType): Tensor;
  /**
   * Running sum along dim.
   *
   * `aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor`
   */
  cumsum(dim: number, dtype?: DType): Tensor;
  /**
   * Running sum along dim, in place.
   *
   * `aten::cumsum_(Tensor(a!) self, int dim, *, ScalarType? dtype=None) -> Tensor(a!)`
   */
  cumsum_(dim: number, dtype?: DType): Tensor;
  /**
   * Running product along dim.
   *
   * `aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor`
   */
  cumprod(dim: number, dtype?: DType): Tensor;
  /**
   * Number of elements that are not zero over dim.
   *
   * `aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor`
   */
  countNonzero(dim: readonly number[]): Tensor;
  /**
   * Median of all elements.
   *
   * `aten::median(Tensor self) -> Tensor`
   */
  median(): Tensor;
  /**
   * Sorted along dim, and the positions.
   *
   * `aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)`
   */
  sort(dim?: number, descending?: boolean): [values: Tensor, indices: Tensor];
  /**
   * Positions that sort along dim.
   *
   * `aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor`
   */
  argsort(dim?: number, descending?: boolean): Tensor;
  /**
   * The k largest (or smallest) along dim, and their positions.
   *
   * `aten::topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)`
   */
  topk(k: number, dim?: number, largest?: boolean, sorted?: boolean): [values: Tensor, indices: Tensor];
  /**
   * The k-th smallest along dim, and its position.
   *
   * `aten::kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)`
   */
  kthvalue(k: number, dim?: number, keepdim?: boolean): [values: Tensor, indices: Tensor];
  /**
   * How often each integer occurs.
   *
   * `aten::bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor`
   */
  bincount(weights?: Tensor, minlength?: number): Tensor;
  /**
   * Histogram of bins equal steps between min and max.
   *
   * `aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor`
   */
  histc(bins?: number, min?: number, max?: number): Tensor;
  /**
   * Which bucket between boundaries each element falls into.
   *
   * `aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor`
   */
  bucketize(boundaries: Tensor, outInt32?: boolean, right?: boolean): Tensor;
  /**
   * Matrix product of the last two dims, batched and broadcast over the others.
   *
   * `aten::matmul(Tensor self, Tensor other) -> Tensor`
   */
  matmul(other: Tensor): Tensor;
  /**
   * Matrix product of two 2-D tensors.
   *
   * `aten::mm(Tensor self, Tensor mat2) -> Tensor`
   */
  mm(mat2: Tensor): Tensor;
  /**
   * Batched matrix product of two 3-D tensors.
   *
   * `aten::bmm(Tensor self, Tensor mat2) -> Tensor`
   */
  bmm(mat2: Tensor): Tensor;
  /**
   * Matrix times vector.
   *
   * `aten::mv(Tensor self, Tensor vec) -> Tensor`
   */
  mv(vec: Tensor): Tensor;
  /**
   * Inner product of two vectors.
   *
   * `aten::dot(Tensor self, Tensor tensor) -> Tensor`
   */
  dot(tensor: Tensor): Tensor;
  /**
   * Outer product of two vectors.
   *
   * `aten::outer(Tensor self, Tensor vec2) -> Tensor`
   */
  outer(vec2: Tensor): Tensor;
  /**
   * beta · self + alpha · mat1 @ mat2.
   *
   * `aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor`
   */
  addmm(mat1: Tensor, mat2: Tensor, beta?: number, alpha?: number): Tensor;
  /**
   * beta · self + alpha · mat1 @ mat2, in place.
   *
   * `aten::addmm_(Tensor(a!) self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)`
   */
  addmm_(mat1: Tensor, mat2: Tensor, beta?: number, alpha?: number): Tensor;
  /**
   * beta · self + alpha · mat @ vec.
   *
   * `aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor`
   */
  addmv(mat: Tensor, vec: Tensor, beta?: number, alpha?: number): Tensor;
  /**
   * beta · self + alpha · batch1 @ batch2, batched.
   *
   * `aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor`
   */
  baddbmm(batch1: Tensor, batch2: Tensor, beta?: number, alpha?: number): Tensor;
  /**
   * beta · self + alpha · batch1 @ batch2, batched, in place.
   *
   * `aten::baddbmm_(Tensor(a!) self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)`
   */
  baddbmm_(batch1: Tensor, batch2: Tensor, beta?: number, alpha?: number): Tensor;
  /**
   * Contraction over the named dims of both.
   *
   * `aten::tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor`
   */
  tensordot(other: Tensor, dimsSelf: readonly number[], dimsOther: readonly number[]): Tensor;
  /**
   * Sum of the diagonal of a matrix.
   *
   * `aten::trace(Tensor self) -> Tensor`
   */
  trace(): Tensor;
  /**
   * Diagonal of a matrix, or a matrix with this diagonal.
   *
   * `aten::diag(Tensor self, int diagonal=0) -> Tensor`
   */
  diag(diagonal?: number): Tensor;
  /**
   * Matrices with these diagonals.
   *
   * `aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor`
   */
  diagEmbed(offset?: number, dim1?: number, dim2?: number): Tensor;
  /**
   * Lower Cholesky factor of symmetric positive matrices.
   *
   * `aten::linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor`
   */
  linalgCholesky(upper?: boolean): Tensor;
  /**
   * Eigenvalues and eigenvectors of symmetric matrices.
   *
   * `aten::linalg_eigh(Tensor self, str UPLO="L") -> (Tensor eigenvalues, Tensor eigenvectors)`
   */
  linalgEigh(UPLO?: string): [eigenvalues: Tensor, eigenvectors: Tensor];
  /**
   * A trailing dim of size numClasses with 1 at the index.
   *
   * `aten::one_hot(Tensor self, int num_classes=-1) -> Tensor`
   */
  oneHot(numClasses?: number): Tensor;
  /**
   * Cross entropy of logits against class indices; reduction 0 none, 1 mean, 2 sum.
   *
   * `aten::cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100, float label_smoothing=0.) -> Tensor`
   */
  crossEntropyLoss(target: Tensor, weight?: Tensor, reduction?: number, ignoreIndex?: number, labelSmoothing?: number): Tensor;
  /**
   * Negative log-likelihood of log-probabilities [N, C] or [C]; reduction as above.
   *
   * `aten::nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor`
   */
  nllLoss(target: Tensor, weight?: Tensor, reduction?: number, ignoreIndex?: number): Tensor;
  /**
   * The same for any number of trailing dims.
   *
   * `aten::nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor`
   */
  nllLossNd(target: Tensor, weight?: Tensor, reduction?: number, ignoreIndex?: number): Tensor;
  /**
   * (self − target)²; reduction 0 none, 1 mean, 2 sum.
   *
   * `aten::mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor`
   */
  mseLoss(target: Tensor, reduction?: number): Tensor;
  /**
   * |self − target|; reduction as above.
   *
   * `aten::l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor`
   */
  l1Loss(target: Tensor, reduction?: number): Tensor;
  /**
   * Squared below beta, absolute above; reduction as above.
   *
   * `aten::smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor`
   */
  smoothL1Loss(target: Tensor, reduction?: number, beta?: number): Tensor;
  /**
   * Squared below delta, linear above; reduction as above.
   *
   * `aten::huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor`
   */
  huberLoss(target: Tensor, reduction?: number, delta?: number): Tensor;
  /**
   * Cross entropy of probabilities against targets in [0, 1].
   *
   * `aten::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor`
   */
  binaryCrossEntropy(target: Tensor, weight?: Tensor, reduction?: number): Tensor;
  /**
   * The same on logits, stable.
   *
   * `aten::binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=1) -> Tensor`
   */
  binaryCrossEntropyWithLogits(target: Tensor, weight?: Tensor, posWeight?: Tensor, reduction?: number): Tensor;
  /**
   * target · (ln target − self), self being log-probabilities.
   *
   * `aten::kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor`
   */
  klDiv(target: Tensor, reduction?: number, logTarget?: boolean): Tensor;
  /**
   * Largest in each window of [N, C, L].
   *
   * `aten::max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> Tensor`
   */
  maxPool1d(kernelSize: number | readonly number[], stride?: number | readonly number[], padding?: number | readonly number[], dilation?: number | readonly number[], ceilMode?: boolean): Tensor;
  /**
   * Largest in each window of [N, C, H, W].
   *
   * `aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor`
   */
  maxPool2d(kernelSize: number | readonly number[], stride?: number | readonly number[], padding?: number | readonly number[], dilation?: number | readonly number[], ceilMode?: boolean): Tensor;
  /**
   * Mean of each window of [N, C, L].
   *
   * `aten::avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool ceil_mode=False, bool count_include_pad=True) -> Tensor`
   */
  avgPool1d(kernelSize: number | readonly number[], stride?: number | readonly number[], padding?: number | readonly number[], ceilMode?: boolean, countIncludePad?: boolean): Tensor;
  /**
   * Mean of each window of [N, C, H, W].
   *
   * `aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor`
   */
  avgPool2d(kernelSize: number | readonly number[], stride?: number | readonly number[], padding?: number | readonly number[], ceilMode?: boolean, countIncludePad?: boolean, divisorOverride?: number): Tensor;
  /**
   * Mean of as many windows as outputSize asks.
   *
   * `aten::adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor`
   */
  adaptiveAvgPool1d(outputSize: number | readonly number[]): Tensor;
  /**
   * The same in two dims.
   *
   * `aten::adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor`
   */
  adaptiveAvgPool2d(outputSize: number | readonly number[]): Tensor;
  /**
   * Pads the last dims; mode "constant", "reflect", "replicate" or "circular".
   *
   * `aten::pad(Tensor self, int[] pad, str mode="constant", float? value=None) -> Tensor`
   */
  pad(pad: readonly number[], mode?: string, value?: number): Tensor;
  /**
   * Pads the last dims with value.
   *
   * `aten::constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor`
   */
  constantPadNd(pad: readonly number[], value?: number): Tensor;
  /**
   * A view of windows of size along dimension, step apart.
   *
   * `aten::unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)`
   */
  unfold(dimension: number, size: number, step: number): Tensor;
  /**
   * The entries of dim at index.
   *
   * `aten::index_select(Tensor self, int dim, Tensor index) -> Tensor`
   */
  indexSelect(dim: number, index: Tensor): Tensor;
  /**
   * Elements at index along dim.
   *
   * `aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor`
   */
  gather(dim: number, index: Tensor, sparseGrad?: boolean): Tensor;
  /**
   * Writes src, or a value, at index along dim.
   *
   * `aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor`
   * `aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor`
   */
  scatter(dim: number, index: Tensor, src: Tensor | number): Tensor;
  /**
   * Writes src, or a value, at index along dim, in place.
   *
   * `aten::scatter_.src(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)`
   * `aten::scatter_.value(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)`
   */
  scatter_(dim: number, index: Tensor, src: Tensor | number): Tensor;
  /**
   * Adds src at index along dim.
   *
   * `aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor`
   */
  scatterAdd(dim: number, index: Tensor, src: Tensor): Tensor;
  /**
   * Adds src at index along dim, in place.
   *
   * `aten::scatter_add_(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)`
   */
  scatterAdd_(dim: number, index: Tensor, src: Tensor): Tensor;
  /**
   * Reduces src into self at index: "sum", "prod", "mean", "amax", "amin".
   *
   * `aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor`
   */
  scatterReduce(dim: number, index: Tensor, src: Tensor, reduce: string, includeSelf?: boolean): Tensor;
  /**
   * Reduces src into self at index: "sum", "prod", "mean", "amax", "amin", in place.
   *
   * `aten::scatter_reduce_.two(Tensor(a!) self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor(a!)`
   */
  scatterReduce_(dim: number, index: Tensor, src: Tensor, reduce: string, includeSelf?: boolean): Tensor;
  /**
   * self[indices]; an undefined index takes its whole dim.
   *
   * `aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor`
   */
  index(indices: readonly (Tensor | undefined)[]): Tensor;
  /**
   * self with self[indices] set to, or increased by, values.
   *
   * `aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor`
   */
  indexPut(indices: readonly (Tensor | undefined)[], values: Tensor, accumulate?: boolean): Tensor;
  /**
   * self with self[indices] set to, or increased by, values, in place.
   *
   * `aten::index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)`
   */
  indexPut_(indices: readonly (Tensor | undefined)[], values: Tensor, accumulate?: boolean): Tensor;
  /**
   * self with alpha · source added at index of dim.
   *
   * `aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor`
   */
  indexAdd(dim: number, index: Tensor, source: Tensor, alpha?: number): Tensor;
  /**
   * self with alpha · source added at index of dim, in place.
   *
   * `aten::index_add_(Tensor(a!) self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor(a!)`
   */
  indexAdd_(dim: number, index: Tensor, source: Tensor, alpha?: number): Tensor;
  /**
   * self with source written at index of dim.
   *
   * `aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor`
   */
  indexCopy(dim: number, index: Tensor, source: Tensor): Tensor;
  /**
   * self with source written at index of dim, in place.
   *
   * `aten::index_copy_(Tensor(a!) self, int dim, Tensor index, Tensor source) -> Tensor(a!)`
   */
  indexCopy_(dim: number, index: Tensor, source: Tensor): Tensor;
  /**
   * self with value written at index of dim.
   *
   * `aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor`
   */
  indexFill(dim: number, index: Tensor, value: number): Tensor;
  /**
   * self with value written at index of dim, in place.
   *
   * `aten::index_fill_.int_Scalar(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)`
   */
  indexFill_(dim: number, index: Tensor, value: number): Tensor;
  /**
   * self with value where mask is true.
   *
   * `aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor`
   * `aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor`
   */
  maskedFill(mask: Tensor, value: number | Tensor): Tensor;
  /**
   * self with value where mask is true, in place.
   *
   * `aten::masked_fill_.Scalar(Tensor(a!) self, Tensor mask, Scalar value) -> Tensor(a!)`
   * `aten::masked_fill_.Tensor(Tensor(a!) self, Tensor mask, Tensor value) -> Tensor(a!)`
   */
  maskedFill_(mask: Tensor, value: number | Tensor): Tensor;
  /**
   * The elements where mask is true, 1-D.
   *
   * `aten::masked_select(Tensor self, Tensor mask) -> Tensor`
   */
  maskedSelect(mask: Tensor): Tensor;
  /**
   * self with elements of source, in order, where mask is true.
   *
   * `aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor`
   */
  maskedScatter(mask: Tensor, source: Tensor): Tensor;
  /**
   * self with elements of source, in order, where mask is true, in place.
   *
   * `aten::masked_scatter_(Tensor(a!) self, Tensor mask, Tensor source) -> Tensor(a!)`
   */
  maskedScatter_(mask: Tensor, source: Tensor): Tensor;
  /**
   * Positions of elements that are not zero [n, ndim].
   *
   * `aten::nonzero(Tensor self) -> Tensor`
   */
  nonzero(): Tensor;
  /**
   * Elements of the flattened tensor at index.
   *
   * `aten::take(Tensor self, Tensor index) -> Tensor`
   */
  take(index: Tensor): Tensor;
  /**
   * Elements at indices along dim, broadcasting.
   *
   * `aten::take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor`
   */
  takeAlongDim(indices: Tensor, dim?: number): Tensor;
  /**
   * A view of length entries of dim from start on.
   *
   * `aten::narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)`
   */
  narrow(dim: number, start: number, length: number): Tensor;
  /**
   * A view of one entry of dim, without that dim.
   *
   * `aten::select.int(Tensor(a) self, int dim, int index) -> Tensor(a)`
   */
  select(dim: number, index: number): Tensor;
  /**
   * A view of dim from start to end by step.
   *
   * `aten::slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a)`
   */
  slice(dim?: number, start?: number, end?: number, step?: number): Tensor;
  /**
   * self with src written to the slice.
   *
   * `aten::slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor`
   */
  sliceScatter(src: Tensor, dim?: number, start?: number, end?: number, step?: number): Tensor;
  /**
   * self with src written to one entry of dim.
   *
   * `aten::select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor`
   */
  selectScatter(src: Tensor, dim: number, index: number): Tensor;
  /**
   * A view of the diagonals.
   *
   * `aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)`
   */
  diagonal(offset?: number, dim1?: number, dim2?: number): Tensor;
  /**
   * Lower triangle, the rest 0.
   *
   * `aten::tril(Tensor self, int diagonal=0) -> Tensor`
   */
  tril(diagonal?: number): Tensor;
  /**
   * Lower triangle, the rest 0, in place.
   *
   * `aten::tril_(Tensor(a!) self, int diagonal=0) -> Tensor(a!)`
   */
  tril_(diagonal?: number): Tensor;
  /**
   * Upper triangle, the rest 0.
   *
   * `aten::triu(Tensor self, int diagonal=0) -> Tensor`
   */
  triu(diagonal?: number): Tensor;
  /**
   * Upper triangle, the rest 0, in place.
   *
   * `aten::triu_(Tensor(a!) self, int diagonal=0) -> Tensor(a!)`
   */
  triu_(diagonal?: number): Tensor;
  /**
   * Reversed along dims.
   *
   * `aten::flip(Tensor self, int[] dims) -> Tensor`
   */
  flip(dims: readonly number[]): Tensor;
  /**
   * Rotated along dims by shifts.
   *
   * `aten::roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor`
   */
  roll(shifts: number | readonly number[], dims?: number | readonly number[]): Tensor;
  /**
   * The tensor repeated, repeats times along each dim.
   *
   * `aten::repeat(Tensor self, int[] repeats) -> Tensor`
   */
  repeat(repeats: readonly number[]): Tensor;
  /**
   * Each entry of dim repeated.
   *
   * `aten::repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> Tensor`
   * `aten::repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) -> Tensor`
   */
  repeatInterleave(repeats: number | Tensor, dim?: number, outputSize?: number): Tensor;
  /**
   * repeat that pads dims on the left.
   *
   * `aten::tile(Tensor self, int[] dims) -> Tensor`
   */
  tile(dims: readonly number[]): Tensor;
  /**
   * The same memory as another shape; one size may be −1.
   *
   * `aten::view(Tensor(a) self, int[] size) -> Tensor(a)`
   */
  view(size: readonly number[]): Tensor;
  /**
   * The same bytes as another dtype.
   *
   * `aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)`
   */
  viewDtype(dtype: DType): Tensor;
  /**
   * view to the shape of other.
   *
   * `aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a)`
   */
  viewAs(other: Tensor): Tensor;
  /**
   * view where possible, else a copy.
   *
   * `aten::reshape(Tensor(a) self, int[] shape) -> Tensor(a)`
   */
  reshape(shape: readonly number[]): Tensor;
  /**
   * reshape to the shape of other.
   *
   * `aten::reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)`
   */
  reshapeAs(other: Tensor): Tensor;
  /**
   * startDim to endDim as one dim.
   *
   * `aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)`
   */
  flatten(startDim?: number, endDim?: number): Tensor;
  /**
   * dim as several sizes.
   *
   * `aten::unflatten.int(Tensor(a) self, int dim, int[] sizes) -> Tensor(a)`
   */
  unflatten(dim: number, sizes: readonly number[]): Tensor;
  /**
   * Without dim when its size is 1.
   *
   * `aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)`
   */
  squeeze(dim: number): Tensor;
  /**
   * Without all dims of size 1.
   *
   * `aten::squeeze(Tensor(a) self) -> Tensor(a)`
   */
  squeezeAll(): Tensor;
  /**
   * With a new dim of size 1.
   *
   * `aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)`
   */
  unsqueeze(dim: number): Tensor;
  /**
   * dim0 and dim1 swapped, a view.
   *
   * `aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)`
   */
  transpose(dim0: number, dim1: number): Tensor;
  /**
   * Transpose of a matrix, a view.
   *
   * `aten::t(Tensor(a) self) -> Tensor(a)`
   */
  t(): Tensor;
  /**
   * Last two dims swapped, a view.
   *
   * `aten::mT(Tensor(a) self) -> Tensor(a)`
   */
  mT(): Tensor;
  /**
   * Dims in another order, a view.
   *
   * `aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)`
   */
  permute(dims: readonly number[]): Tensor;
  /**
   * source dim moved to destination, a view.
   *
   * `aten::movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)`
   */
  movedim(source: number, destination: number): Tensor;
  /**
   * Dims of size 1 repeated without copying.
   *
   * `aten::expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a)`
   */
  expand(size: readonly number[], implicit?: boolean): Tensor;
  /**
   * expand to the shape of other.
   *
   * `aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a)`
   */
  expandAs(other: Tensor): Tensor;
  /**
   * expand that may add dims on the left.
   *
   * `aten::broadcast_to(Tensor(a) self, int[] size) -> Tensor(a)`
   */
  broadcastTo(size: readonly number[]): Tensor;
  /**
   * Itself when its elements lie in order, else a copy that does.
   *
   * `aten::contiguous(Tensor(a) self) -> Tensor(a)`
   */
  contiguous(): Tensor;
  /**
   * A view with given sizes and strides; nothing is checked but the bounds.
   *
   * `aten::as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a)`
   */
  asStrided(size: readonly number[], stride: readonly number[], storageOffset?: number): Tensor;
  /**
   * The same tensor as a new view.
   *
   * `aten::alias(Tensor(a) self) -> Tensor(a)`
   */
  alias(): Tensor;
  /**
   * Views of splitSize entries of dim each, or of the sizes listed.
   *
   * `aten::split.Tensor(Tensor(a -> *) self, int split_size, int dim=0) -> Tensor(a)[]`
   * `aten::split.sizes(Tensor(a -> *) self, int[] split_size, int dim=0) -> Tensor(a)[]`
   */
  split(splitSize: number | readonly number[], dim?: number): Tensor[];
  /**
   * At most chunks views of equal size along dim.
   *
   * `aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]`
   */
  chunk(chunks: number, dim?: number): Tensor[];
  /**
   * Views of each entry of dim, without that dim.
   *
   * `aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]`
   */
  unbind(dim?: number): Tensor[];
  /**
   * A copy of its own memory.
   *
   * `aten::clone(Tensor self) -> Tensor`
   */
  clone(): Tensor;
  /**
   * The same memory outside the autograd graph.
   *
   * `aten::detach(Tensor(a) self) -> Tensor(a)`
   */
  detach(): Tensor;
  /**
   * The tensor in another dtype; itself when it has it and copy is false.
   *
   * `aten::to.dtype(Tensor(a) self, ScalarType dtype, bool copy=False) -> Tensor(a)`
   */
  to(dtype: DType, copy?: boolean): Tensor;
  /**
   * The tensor in the dtype of other.
   *
   * `aten::type_as(Tensor self, Tensor other) -> Tensor`
   */
  typeAs(other: Tensor): Tensor;
  /**
   * Elements of src, converted and broadcast, in place.
   *
   * `aten::copy_(Tensor(a!) self, Tensor src) -> Tensor(a!)`
   */
  copy_(src: Tensor): Tensor;
  /**
   * value everywhere, in place.
   *
   * `aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)`
   * `aten::fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)`
   */
  fill_(value: number | Tensor): Tensor;
  /**
   * 0 everywhere, in place.
   *
   * `aten::zero_(Tensor(a!) self) -> Tensor(a!)`
   */
  zero_(): Tensor;
  /**
   * How often the memory has been written to in place.
   *
   * `aten::_version(Tensor self) -> int`
   */
  writeCount(): number;
  /**
   * Uninitialised, shape and dtype of self unless given.
   *
   * `aten::empty_like(Tensor self, *, ScalarType? dtype=None) -> Tensor`
   */
  emptyLike(dtype?: DType): Tensor;
  /**
   * 0, shape and dtype of self unless given.
   *
   * `aten::zeros_like(Tensor self, *, ScalarType? dtype=None) -> Tensor`
   */
  zerosLike(dtype?: DType): Tensor;
  /**
   * 1, shape and dtype of self unless given.
   *
   * `aten::ones_like(Tensor self, *, ScalarType? dtype=None) -> Tensor`
   */
  onesLike(dtype?: DType): Tensor;
  /**
   * fillValue, shape and dtype of self unless given.
   *
   * `aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None) -> Tensor`
   */
  fullLike(fillValue: number, dtype?: DType): Tensor;
  /**
   * Uniform in [low, high); element i depends on (seed, stream, offset + i) alone (Salmon et al. 2011).
   *
   * `troupe::philox_uniform_(Tensor(a!) self, float low, float high, int seed, int stream, int offset) -> Tensor(a!)`
   */
  philoxUniform_(low: number, high: number, seed: number, stream: number, offset: number): Tensor;
  /**
   * Normal of mean and std; element i depends on (seed, stream, offset + i) alone (Salmon et al. 2011).
   *
   * `troupe::philox_normal_(Tensor(a!) self, float mean, float std, int seed, int stream, int offset) -> Tensor(a!)`
   */
  philoxNormal_(mean: number, std: number, seed: number, stream: number, offset: number): Tensor;
}

declare module "./tensor.ts" {
  interface Tensor extends OperatorMethods {}
}

const methods: OperatorMethods & ThisType<Tensor> = {
  add(other, alpha) {
    return ops.add(this, other, alpha);
  },
  add_(other, alpha) {
    return ops.add_(this, other, alpha);
  },
  sub(other, alpha) {
    return ops.sub(this, other, alpha);
  },
  sub_(other, alpha) {
    return ops.sub_(this, other, alpha);
  },
  rsub(other, alpha) {
    return ops.rsub(this, other, alpha);
  },
  mul(other) {
    return ops.mul(this, other);
  },
  mul_(other) {
    return ops.mul_(this, other);
  },
  div(other) {
    return ops.div(this, other);
  },
  div_(other) {
    return ops.div_(this, other);
  },
  floorDivide(other) {
    return ops.floorDivide(this, other);
  },
  remainder(other) {
    return ops.remainder(this, other);
  },
  fmod(other) {
    return ops.fmod(this, other);
  },
  neg() {
    return ops.neg(this);
  },
  neg_() {
    return ops.neg_(this);
  },
  abs() {
    return ops.abs(this);
  },
  abs_() {
    return ops.abs_(this);
  },
  sign() {
    return ops.sign(this);
  },
  reciprocal() {
    return ops.reciprocal(this);
  },
  reciprocal_() {
    return ops.reciprocal_(this);
  },
  square() {
    return ops.square(this);
  },
  square_() {
    return ops.square_(this);
  },
  sqrt() {
    return ops.sqrt(this);
  },
  sqrt_() {
    return ops.sqrt_(this);
  },
  rsqrt() {
    return ops.rsqrt(this);
  },
  rsqrt_() {
    return ops.rsqrt_(this);
  },
  pow(exponent) {
    return ops.pow(this, exponent);
  },
  pow_(exponent) {
    return ops.pow_(this, exponent);
  },
  exp() {
    return ops.exp(this);
  },
  exp_() {
    return ops.exp_(this);
  },
  exp2() {
    return ops.exp2(this);
  },
  expm1() {
    return ops.expm1(this);
  },
  log() {
    return ops.log(this);
  },
  log_() {
    return ops.log_(this);
  },
  log1p() {
    return ops.log1p(this);
  },
  log2() {
    return ops.log2(this);
  },
  log10() {
    return ops.log10(this);
  },
  logaddexp(other) {
    return ops.logaddexp(this, other);
  },
  sin() {
    return ops.sin(this);
  },
  cos() {
    return ops.cos(this);
  },
  erf() {
    return ops.erf(this);
  },
  floor() {
    return ops.floor(this);
  },
  floor_() {
    return ops.floor_(this);
  },
  ceil() {
    return ops.ceil(this);
  },
  ceil_() {
    return ops.ceil_(this);
  },
  round() {
    return ops.round(this);
  },
  round_() {
    return ops.round_(this);
  },
  trunc() {
    return ops.trunc(this);
  },
  frac() {
    return ops.frac(this);
  },
  clamp(min, max) {
    return ops.clamp(this, min, max);
  },
  clamp_(min, max) {
    return ops.clamp_(this, min, max);
  },
  clampMin(min) {
    return ops.clampMin(this, min);
  },
  clampMin_(min) {
    return ops.clampMin_(this, min);
  },
  clampMax(max) {
    return ops.clampMax(this, max);
  },
  clampMax_(max) {
    return ops.clampMax_(this, max);
  },
  maximum(other) {
    return ops.maximum(this, other);
  },
  minimum(other) {
    return ops.minimum(this, other);
  },
  addcmul(tensor1, tensor2, value) {
    return ops.addcmul(this, tensor1, tensor2, value);
  },
  addcmul_(tensor1, tensor2, value) {
    return ops.addcmul_(this, tensor1, tensor2, value);
  },
  addcdiv(tensor1, tensor2, value) {
    return ops.addcdiv(this, tensor1, tensor2, value);
  },
  addcdiv_(tensor1, tensor2, value) {
    return ops.addcdiv_(this, tensor1, tensor2, value);
  },
  lerp(end, weight) {
    return ops.lerp(this, end, weight);
  },
  lerp_(end, weight) {
    return ops.lerp_(this, end, weight);
  },
  nanToNum(nan, posinf, neginf) {
    return ops.nanToNum(this, nan, posinf, neginf);
  },
  nanToNum_(nan, posinf, neginf) {
    return ops.nanToNum_(this, nan, posinf, neginf);
  },
  isnan() {
    return ops.isnan(this);
  },
  isinf() {
    return ops.isinf(this);
  },
  isfinite() {
    return ops.isfinite(this);
  },
  relu() {
    return ops.relu(this);
  },
  relu_() {
    return ops.relu_(this);
  },
  gelu(approximate) {
    return ops.gelu(this, approximate);
  },
  gelu_(approximate) {
    return ops.gelu_(this, approximate);
  },
  silu() {
    return ops.silu(this);
  },
  silu_() {
    return ops.silu_(this);
  },
  mish() {
    return ops.mish(this);
  },
  sigmoid() {
    return ops.sigmoid(this);
  },
  sigmoid_() {
    return ops.sigmoid_(this);
  },
  logSigmoid() {
    return ops.logSigmoid(this);
  },
  tanh() {
    return ops.tanh(this);
  },
  tanh_() {
    return ops.tanh_(this);
  },
  softplus(beta, threshold) {
    return ops.softplus(this, beta, threshold);
  },
  elu(alpha, scale, inputScale) {
    return ops.elu(this, alpha, scale, inputScale);
  },
  leakyRelu(negativeSlope) {
    return ops.leakyRelu(this, negativeSlope);
  },
  hardtanh(minVal, maxVal) {
    return ops.hardtanh(this, minVal, maxVal);
  },
  hardsigmoid() {
    return ops.hardsigmoid(this);
  },
  hardswish() {
    return ops.hardswish(this);
  },
  relu6() {
    return ops.relu6(this);
  },
  glu(dim) {
    return ops.glu(this, dim);
  },
  softmax(dim, dtype) {
    return ops.softmax(this, dim, dtype);
  },
  logSoftmax(dim, dtype) {
    return ops.logSoftmax(this, dim, dtype);
  },
  eq(other) {
    return ops.eq(this, other);
  },
  eq_(other) {
    return ops.eq_(this, other);
  },
  ne(other) {
    return ops.ne(this, other);
  },
  lt(other) {
    return ops.lt(this, other);
  },
  le(other) {
    return ops.le(this, other);
  },
  gt(other) {
    return ops.gt(this, other);
  },
  ge(other) {
    return ops.ge(this, other);
  },
  logicalAnd(other) {
    return ops.logicalAnd(this, other);
  },
  logicalAnd_(other) {
    return ops.logicalAnd_(this, other);
  },
  logicalOr(other) {
    return ops.logicalOr(this, other);
  },
  logicalOr_(other) {
    return ops.logicalOr_(this, other);
  },
  logicalXor(other) {
    return ops.logicalXor(this, other);
  },
  logicalNot() {
    return ops.logicalNot(this);
  },
  logicalNot_() {
    return ops.logicalNot_(this);
  },
  bitwiseAnd(other) {
    return ops.bitwiseAnd(this, other);
  },
  bitwiseOr(other) {
    return ops.bitwiseOr(this, other);
  },
  bitwiseXor(other) {
    return ops.bitwiseXor(this, other);
  },
  bitwiseNot() {
    return ops.bitwiseNot(this);
  },
  equal(other) {
    return ops.equal(this, other);
  },
  isclose(other, rtol, atol, equalNan) {
    return ops.isclose(this, other, rtol, atol, equalNan);
  },
  allclose(other, rtol, atol, equalNan) {
    return ops.allclose(this, other, rtol, atol, equalNan);
  },
  any() {
    return ops.any(this);
  },
  anyDim(dim, keepdim) {
    return ops.anyDim(this, dim, keepdim);
  },
  all() {
    return ops.all(this);
  },
  allDim(dim, keepdim) {
    return ops.allDim(this, dim, keepdim);
  },
  sum(dim, keepdim, dtype) {
    return ops.sum(this, dim, keepdim, dtype);
  },
  mean(dim, keepdim, dtype) {
    return ops.mean(this, dim, keepdim, dtype);
  },
  prod(dtype) {
    return ops.prod(this, dtype);
  },
  prodDim(dim, keepdim, dtype) {
    return ops.prodDim(this, dim, keepdim, dtype);
  },
  amax(dim, keepdim) {
    return ops.amax(this, dim, keepdim);
  },
  amin(dim, keepdim) {
    return ops.amin(this, dim, keepdim);
  },
  max() {
    return ops.max(this);
  },
  min() {
    return ops.min(this);
  },
  maxDim(dim, keepdim) {
    return ops.maxDim(this, dim, keepdim);
  },
  minDim(dim, keepdim) {
    return ops.minDim(this, dim, keepdim);
  },
  argmax(dim, keepdim) {
    return ops.argmax(this, dim, keepdim);
  },
  argmin(dim, keepdim) {
    return ops.argmin(this, dim, keepdim);
  },
  std(dim, correction, keepdim) {
    return ops.std(this, dim, correction, keepdim);
  },
  variance(dim, correction, keepdim) {
    return ops.variance(this, dim, correction, keepdim);
  },
  varMean(dim, correction, keepdim) {
    return ops.varMean(this, dim, correction, keepdim);
  },
  logsumexp(dim, keepdim) {
    return ops.logsumexp(this, dim, keepdim);
  },
  linalgVectorNorm(ord, dim, keepdim, dtype) {
    return ops.linalgVectorNorm(this, ord, dim, keepdim, dtype);
  },
  cumsum(dim, dtype) {
    return ops.cumsum(this, dim, dtype);
  },
  cumsum_(dim, dtype) {
    return ops.cumsum_(this, dim, dtype);
  },
  cumprod(dim, dtype) {
    return ops.cumprod(this, dim, dtype);
  },
  countNonzero(dim) {
    return ops.countNonzero(this, dim);
  },
  median() {
    return ops.median(this);
  },
  sort(dim, descending) {
    return ops.sort(this, dim, descending);
  },
  argsort(dim, descending) {
    return ops.argsort(this, dim, descending);
  },
  topk(k, dim, largest, sorted) {
    return ops.topk(this, k, dim, largest, sorted);
  },
  kthvalue(k, dim, keepdim) {
    return ops.kthvalue(this, k, dim, keepdim);
  },
  bincount(weights, minlength) {
    return ops.bincount(this, weights, minlength);
  },
  histc(bins, min, max) {
    return ops.histc(this, bins, min, max);
  },
  bucketize(boundaries, outInt32, right) {
    return ops.bucketize(this, boundaries, outInt32, right);
  },
  matmul(other) {
    return ops.matmul(this, other);
  },
  mm(mat2) {
    return ops.mm(this, mat2);
  },
  bmm(mat2) {
    return ops.bmm(this, mat2);
  },
  mv(vec) {
    return ops.mv(this, vec);
  },
  dot(tensor) {
    return ops.dot(this, tensor);
  },
  outer(vec2) {
    return ops.outer(this, vec2);
  },
  addmm(mat1, mat2, beta, alpha) {
    return ops.addmm(this, mat1, mat2, beta, alpha);
  },
  addmm_(mat1, mat2, beta, alpha) {
    return ops.addmm_(this, mat1, mat2, beta, alpha);
  },
  addmv(mat, vec, beta, alpha) {
    return ops.addmv(this, mat, vec, beta, alpha);
  },
  baddbmm(batch1, batch2, beta, alpha) {
    return ops.baddbmm(this, batch1, batch2, beta, alpha);
  },
  baddbmm_(batch1, batch2, beta, alpha) {
    return ops.baddbmm_(this, batch1, batch2, beta, alpha);
  },
  tensordot(other, dimsSelf, dimsOther) {
    return ops.tensordot(this, other, dimsSelf, dimsOther);
  },
  trace() {
    return ops.trace(this);
  },
  diag(diagonal) {
    return ops.diag(this, diagonal);
  },
  diagEmbed(offset, dim1, dim2) {
    return ops.diagEmbed(this, offset, dim1, dim2);
  },
  linalgCholesky(upper) {
    return ops.linalgCholesky(this, upper);
  },
  linalgEigh(UPLO) {
    return ops.linalgEigh(this, UPLO);
  },
  oneHot(numClasses) {
    return ops.oneHot(this, numClasses);
  },
  crossEntropyLoss(target, weight, reduction, ignoreIndex, labelSmoothing) {
    return ops.crossEntropyLoss(this, target, weight, reduction, ignoreIndex, labelSmoothing);
  },
  nllLoss(target, weight, reduction, ignoreIndex) {
    return ops.nllLoss(this, target, weight, reduction, ignoreIndex);
  },
  nllLossNd(target, weight, reduction, ignoreIndex) {
    return ops.nllLossNd(this, target, weight, reduction, ignoreIndex);
  },
  mseLoss(target, reduction) {
    return ops.mseLoss(this, target, reduction);
  },
  l1Loss(target, reduction) {
    return ops.l1Loss(this, target, reduction);
  },
  smoothL1Loss(target, reduction, beta) {
    return ops.smoothL1Loss(this, target, reduction, beta);
  },
  huberLoss(target, reduction, delta) {
    return ops.huberLoss(this, target, reduction, delta);
  },
  binaryCrossEntropy(target, weight, reduction) {
    return ops.binaryCrossEntropy(this, target, weight, reduction);
  },
  binaryCrossEntropyWithLogits(target, weight, posWeight, reduction) {
    return ops.binaryCrossEntropyWithLogits(this, target, weight, posWeight, reduction);
  },
  klDiv(target, reduction, logTarget) {
    return ops.klDiv(this, target, reduction, logTarget);
  },
  maxPool1d(kernelSize, stride, padding, dilation, ceilMode) {
    return ops.maxPool1d(this, kernelSize, stride, padding, dilation, ceilMode);
  },
  maxPool2d(kernelSize, stride, padding, dilation, ceilMode) {
    return ops.maxPool2d(this, kernelSize, stride, padding, dilation, ceilMode);
  },
  avgPool1d(kernelSize, stride, padding, ceilMode, countIncludePad) {
    return ops.avgPool1d(this, kernelSize, stride, padding, ceilMode, countIncludePad);
  },
  avgPool2d(kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride) {
    return ops.avgPool2d(this, kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride);
  },
  adaptiveAvgPool1d(outputSize) {
    return ops.adaptiveAvgPool1d(this, outputSize);
  },
  adaptiveAvgPool2d(outputSize) {
    return ops.adaptiveAvgPool2d(this, outputSize);
  },
  pad(pad, mode, value) {
    return ops.pad(this, pad, mode, value);
  },
  constantPadNd(pad, value) {
    return ops.constantPadNd(this, pad, value);
  },
  unfold(dimension, size, step) {
    return ops.unfold(this, dimension, size, step);
  },
  indexSelect(dim, index) {
    return ops.indexSelect(this, dim, index);
  },
  gather(dim, index, sparseGrad) {
    return ops.gather(this, dim, index, sparseGrad);
  },
  scatter(dim, index, src) {
    return ops.scatter(this, dim, index, src);
  },
  scatter_(dim, index, src) {
    return ops.scatter_(this, dim, index, src);
  },
  scatterAdd(dim, index, src) {
    return ops.scatterAdd(this, dim, index, src);
  },
  scatterAdd_(dim, index, src) {
    return ops.scatterAdd_(this, dim, index, src);
  },
  scatterReduce(dim, index, src, reduce, includeSelf) {
    return ops.scatterReduce(this, dim, index, src, reduce, includeSelf);
  },
  scatterReduce_(dim, index, src, reduce, includeSelf) {
    return ops.scatterReduce_(this, dim, index, src, reduce, includeSelf);
  },
  index(indices) {
    return ops.index(this, indices);
  },
  indexPut(indices, values, accumulate) {
    return ops.indexPut(this, indices, values, accumulate);
  },
  indexPut_(indices, values, accumulate) {
    return ops.indexPut_(this, indices, values, accumulate);
  },
  indexAdd(dim, index, source, alpha) {
    return ops.indexAdd(this, dim, index, source, alpha);
  },
  indexAdd_(dim, index, source, alpha) {
    return ops.indexAdd_(this, dim, index, source, alpha);
  },
  indexCopy(dim, index, source) {
    return ops.indexCopy(this, dim, index, source);
  },
  indexCopy_(dim, index, source) {
    return ops.indexCopy_(this, dim, index, source);
  },
  indexFill(dim, index, value) {
    return ops.indexFill(this, dim, index, value);
  },
  indexFill_(dim, index, value) {
    return ops.indexFill_(this, dim, index, value);
  },
  maskedFill(mask, value) {
    return ops.maskedFill(this, mask, value);
  },
  maskedFill_(mask, value) {
    return ops.maskedFill_(this, mask, value);
  },
  maskedSelect(mask) {
    return ops.maskedSelect(this, mask);
  },
  maskedScatter(mask, source) {
    return ops.maskedScatter(this, mask, source);
  },
  maskedScatter_(mask, source) {
    return ops.maskedScatter_(this, mask, source);
  },
  nonzero() {
    return ops.nonzero(this);
  },
  take(index) {
    return ops.take(this, index);
  },
  takeAlongDim(indices, dim) {
    return ops.takeAlongDim(this, indices, dim);
  },
  narrow(dim, start, length) {
    return ops.narrow(this, dim, start, length);
  },
  select(dim, index) {
    return ops.select(this, dim, index);
  },
  slice(dim, start, end, step) {
    return ops.slice(this, dim, start, end, step);
  },
  sliceScatter(src, dim, start, end, step) {
    return ops.sliceScatter(this, src, dim, start, end, step);
  },
  selectScatter(src, dim, index) {
    return ops.selectScatter(this, src, dim, index);
  },
  diagonal(offset, dim1, dim2) {
    return ops.diagonal(this, offset, dim1, dim2);
  },
  tril(diagonal) {
    return ops.tril(this, diagonal);
  },
  tril_(diagonal) {
    return ops.tril_(this, diagonal);
  },
  triu(diagonal) {
    return ops.triu(this, diagonal);
  },
  triu_(diagonal) {
    return ops.triu_(this, diagonal);
  },
  flip(dims) {
    return ops.flip(this, dims);
  },
  roll(shifts, dims) {
    return ops.roll(this, shifts, dims);
  },
  repeat(repeats) {
    return ops.repeat(this, repeats);
  },
  repeatInterleave(repeats, dim, outputSize) {
    return ops.repeatInterleave(this, repeats, dim, outputSize);
  },
  tile(dims) {
    return ops.tile(this, dims);
  },
  view(size) {
    return ops.view(this, size);
  },
  viewDtype(dtype) {
    return ops.viewDtype(this, dtype);
  },
  viewAs(other) {
    return ops.viewAs(this, other);
  },
  reshape(shape) {
    return ops.reshape(this, shape);
  },
  reshapeAs(other) {
    return ops.reshapeAs(this, other);
  },
  flatten(startDim, endDim) {
    return ops.flatten(this, startDim, endDim);
  },
  unflatten(dim, sizes) {
    return ops.unflatten(this, dim, sizes);
  },
  squeeze(dim) {
    return ops.squeeze(this, dim);
  },
  squeezeAll() {
    return ops.squeezeAll(this);
  },
  unsqueeze(dim) {
    return ops.unsqueeze(this, dim);
  },
  transpose(dim0, dim1) {
    return ops.transpose(this, dim0, dim1);
  },
  t() {
    return ops.t(this);
  },
  mT() {
    return ops.mT(this);
  },
  permute(dims) {
    return ops.permute(this, dims);
  },
  movedim(source, destination) {
    return ops.movedim(this, source, destination);
  },
  expand(size, implicit) {
    return ops.expand(this, size, implicit);
  },
  expandAs(other) {
    return ops.expandAs(this, other);
  },
  broadcastTo(size) {
    return ops.broadcastTo(this, size);
  },
  contiguous() {
    return ops.contiguous(this);
  },
  asStrided(size, stride, storageOffset) {
    return ops.asStrided(this, size, stride, storageOffset);
  },
  alias() {
    return ops.alias(this);
  },
  split(splitSize, dim) {
    return ops.split(this, splitSize, dim);
  },
  chunk(chunks, dim) {
    return ops.chunk(this, chunks, dim);
  },
  unbind(dim) {
    return ops.unbind(this, dim);
  },
  clone() {
    return ops.clone(this);
  },
  detach() {
    return ops.detach(this);
  },
  to(dtype, copy) {
    return ops.to(this, dtype, copy);
  },
  typeAs(other) {
    return ops.typeAs(this, other);
  },
  copy_(src) {
    return ops.copy_(this, src);
  },
  fill_(value) {
    return ops.fill_(this, value);
  },
  zero_() {
    return ops.zero_(this);
  },
  writeCount() {
    return ops.writeCount(this);
  },
  emptyLike(dtype) {
    return ops.emptyLike(this, dtype);
  },
  zerosLike(dtype) {
    return ops.zerosLike(this, dtype);
  },
  onesLike(dtype) {
    return ops.onesLike(this, dtype);
  },
  fullLike(fillValue, dtype) {
    return ops.fullLike(this, fillValue, dtype);
  },
  philoxUniform_(low, high, seed, stream, offset) {
    return troupe.philoxUniform_(this, low, high, seed, stream, offset);
  },
  philoxNormal_(mean, std, seed, stream, offset) {
    return troupe.philoxNormal_(this, mean, std, seed, stream, offset);
  },
};

Object.assign(Tensor.prototype, methods);
