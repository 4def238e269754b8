// Written by scripts/generate-ops.ts from scripts/operators/operators.txt and the schemas of libtorch 2.13.0.

import { type DType, dtypeCode } from "./dtype.ts";
import { call, frame, handleOf, intern, putNumbers, putOptionalNumbers, putOptionalTensors, putTensors } from "./frame.ts";
import { adopt, adoptAt, adoptList, type Tensor } from "./tensor.ts";

/**
 * self + alpha · other, broadcasting.
 *
 * `aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`
 * `aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor`
 */
export function add(self: Tensor, other: Tensor | number, alpha = 1): Tensor {
  if (typeof other === "number") {
    frame[0] = handleOf(self, "add", "self");
    frame[1] = other;
    frame[2] = alpha;
    return adopt(call(1));
  }
  frame[0] = handleOf(self, "add", "self");
  frame[1] = handleOf(other, "add", "other");
  frame[2] = alpha;
  return adopt(call(0));
}

/**
 * self + alpha · other, broadcasting, in place.
 *
 * `aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)`
 * `aten::add_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)`
 */
export function add_(self: Tensor, other: Tensor | number, alpha = 1): Tensor {
  if (typeof other === "number") {
    frame[0] = handleOf(self, "add_", "self");
    frame[1] = other;
    frame[2] = alpha;
    call(3);
    return self;
  }
  frame[0] = handleOf(self, "add_", "self");
  frame[1] = handleOf(other, "add_", "other");
  frame[2] = alpha;
  call(2);
  return self;
}

/**
 * self − alpha · other, broadcasting.
 *
 * `aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`
 * `aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor`
 */
export function sub(self: Tensor, other: Tensor | number, alpha = 1): Tensor {
  if (typeof other === "number") {
    frame[0] = handleOf(self, "sub", "self");
    frame[1] = other;
    frame[2] = alpha;
    return adopt(call(5));
  }
  frame[0] = handleOf(self, "sub", "self");
  frame[1] = handleOf(other, "sub", "other");
  frame[2] = alpha;
  return adopt(call(4));
}

/**
 * self − alpha · other, broadcasting, in place.
 *
 * `aten::sub_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)`
 * `aten::sub_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)`
 */
export function sub_(self: Tensor, other: Tensor | number, alpha = 1): Tensor {
  if (typeof other === "number") {
    frame[0] = handleOf(self, "sub_", "self");
    frame[1] = other;
    frame[2] = alpha;
    call(7);
    return self;
  }
  frame[0] = handleOf(self, "sub_", "self");
  frame[1] = handleOf(other, "sub_", "other");
  frame[2] = alpha;
  call(6);
  return self;
}

/**
 * other − alpha · self, broadcasting.
 *
 * `aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`
 * `aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor`
 */
export function rsub(self: Tensor, other: Tensor | number, alpha = 1): Tensor {
  if (typeof other === "number") {
    frame[0] = handleOf(self, "rsub", "self");
    frame[1] = other;
    frame[2] = alpha;
    return adopt(call(9));
  }
  frame[0] = handleOf(self, "rsub", "self");
  frame[1] = handleOf(other, "rsub", "other");
  frame[2] = alpha;
  return adopt(call(8));
}

/**
 * self · other, broadcasting.
 *
 * `aten::mul.Tensor(Tensor self, Tensor other) -> Tensor`
 * `aten::mul.Scalar(Tensor self, Scalar other) -> Tensor`
 */
export function mul(self: Tensor, other: Tensor | number): Tensor {
  if (typeof other === "number") {
    frame[0] = handleOf(self, "mul", "self");
    frame[1] = other;
    return adopt(call(11));
  }
  frame[0] = handleOf(self, "mul", "self");
  frame[1] = handleOf(other, "mul", "other");
  return adopt(call(10));
}

/**
 * self · other, broadcasting, in place.
 *
 * `aten::mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)`
 * `aten::mul_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)`
 */
export function mul_(self: Tensor, other: Tensor | number): Tensor {
  if (typeof other === "number") {
    frame[0] = handleOf(self, "mul_", "self");
    frame[1] = other;
    call(13);
    return self;
  }
  frame[0] = handleOf(self, "mul_", "self");
  frame[1] = handleOf(other, "mul_", "other");
  call(12);
  return self;
}

/**
 * self / other, broadcasting; integers give floats.
 *
 * `aten::div.Tensor(Tensor self, Tensor other) -> Tensor`
 * `aten::div.Scalar(Tensor self, Scalar other) -> Tensor`
 */
export function div(self: Tensor, other: Tensor | number): Tensor {
  if (typeof other === "number") {
    frame[0] = handleOf(self, "div", "self");
    frame[1] = other;
    return adopt(call(15));
  }
  frame[0] = handleOf(self, "div", "self");
  frame[1] = handleOf(other, "div", "other");
  return adopt(call(14));
}

/**
 * self / other, broadcasting; integers give floats, in place.
 *
 * `aten::div_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)`
 * `aten::div_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)`
 */
export function div_(self: Tensor, other: Tensor | number): Tensor {
  if (typeof other === "number") {
    frame[0] = handleOf(self, "div_", "self");
    frame[1] = other;
    call(17);
    return self;
  }
  frame[0] = handleOf(self, "div_", "self");
  frame[1] = handleOf(other, "div_", "other");
  call(16);
  return self;
}

/**
 * ⌊self / other⌋.
 *
 * `aten::floor_divide(Tensor self, Tensor other) -> Tensor`
 * `aten::floor_divide.Scalar(Tensor self, Scalar other) -> Tensor`
 */
export function floorDivide(self: Tensor, other: Tensor | number): Tensor {
  if (typeof other === "number") {
    frame[0] = handleOf(self, "floorDivide", "self");
    frame[1] = other;
    return adopt(call(19));
  }
  frame[0] = handleOf(self, "floorDivide", "self");
  frame[1] = handleOf(other, "floorDivide", "other");
  return adopt(call(18));
}

/**
 * Remainder of self / other with the sign of other.
 *
 * `aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor`
 * `aten::remainder.Scalar(Tensor self, Scalar other) -> Tensor`
 */
export function remainder(self: Tensor, other: Tensor | number): Tensor {
  if (typeof other === "number") {
    frame[0] = handleOf(self, "remainder", "self");
    frame[1] = other;
    return adopt(call(21));
  }
  frame[0] = handleOf(self, "remainder", "self");
  frame[1] = handleOf(other, "remainder", "other");
  return adopt(call(20));
}

/**
 * Remainder of self / other with the sign of self.
 *
 * `aten::fmod.Tensor(Tensor self, Tensor other) -> Tensor`
 * `aten::fmod.Scalar(Tensor self, Scalar other) -> Tensor`
 */
export function fmod(self: Tensor, other: Tensor | number): Tensor {
  if (typeof other === "number") {
    frame[0] = handleOf(self, "fmod", "self");
    frame[1] = other;
    return adopt(call(23));
  }
  frame[0] = handleOf(self, "fmod", "self");
  frame[1] = handleOf(other, "fmod", "other");
  return adopt(call(22));
}

/**
 * −self.
 *
 * `aten::neg(Tensor self) -> Tensor`
 */
export function neg(self: Tensor): Tensor {
  frame[0] = handleOf(self, "neg", "self");
  return adopt(call(24));
}

/**
 * −self, in place.
 *
 * `aten::neg_(Tensor(a!) self) -> Tensor(a!)`
 */
export function neg_(self: Tensor): Tensor {
  frame[0] = handleOf(self, "neg_", "self");
  call(25);
  return self;
}

/**
 * Absolute value.
 *
 * `aten::abs(Tensor self) -> Tensor`
 */
export function abs(self: Tensor): Tensor {
  frame[0] = handleOf(self, "abs", "self");
  return adopt(call(26));
}

/**
 * Absolute value, in place.
 *
 * `aten::abs_(Tensor(a!) self) -> Tensor(a!)`
 */
export function abs_(self: Tensor): Tensor {
  frame[0] = handleOf(self, "abs_", "self");
  call(27);
  return self;
}

/**
 * −1, 0 or 1 by the sign.
 *
 * `aten::sign(Tensor self) -> Tensor`
 */
export function sign(self: Tensor): Tensor {
  frame[0] = handleOf(self, "sign", "self");
  return adopt(call(28));
}

/**
 * 1 / self.
 *
 * `aten::reciprocal(Tensor self) -> Tensor`
 */
export function reciprocal(self: Tensor): Tensor {
  frame[0] = handleOf(self, "reciprocal", "self");
  return adopt(call(29));
}

/**
 * 1 / self, in place.
 *
 * `aten::reciprocal_(Tensor(a!) self) -> Tensor(a!)`
 */
export function reciprocal_(self: Tensor): Tensor {
  frame[0] = handleOf(self, "reciprocal_", "self");
  call(30);
  return self;
}

/**
 * self².
 *
 * `aten::square(Tensor self) -> Tensor`
 */
export function square(self: Tensor): Tensor {
  frame[0] = handleOf(self, "square", "self");
  return adopt(call(31));
}

/**
 * self², in place.
 *
 * `aten::square_(Tensor(a!) self) -> Tensor(a!)`
 */
export function square_(self: Tensor): Tensor {
  frame[0] = handleOf(self, "square_", "self");
  call(32);
  return self;
}

/**
 * Square root.
 *
 * `aten::sqrt(Tensor self) -> Tensor`
 */
export function sqrt(self: Tensor): Tensor {
  frame[0] = handleOf(self, "sqrt", "self");
  return adopt(call(33));
}

/**
 * Square root, in place.
 *
 * `aten::sqrt_(Tensor(a!) self) -> Tensor(a!)`
 */
export function sqrt_(self: Tensor): Tensor {
  frame[0] = handleOf(self, "sqrt_", "self");
  call(34);
  return self;
}

/**
 * 1 / √self.
 *
 * `aten::rsqrt(Tensor self) -> Tensor`
 */
export function rsqrt(self: Tensor): Tensor {
  frame[0] = handleOf(self, "rsqrt", "self");
  return adopt(call(35));
}

/**
 * 1 / √self, in place.
 *
 * `aten::rsqrt_(Tensor(a!) self) -> Tensor(a!)`
 */
export function rsqrt_(self: Tensor): Tensor {
  frame[0] = handleOf(self, "rsqrt_", "self");
  call(36);
  return self;
}

/**
 * self to the power of exponent.
 *
 * `aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor`
 * `aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor`
 */
export function pow(self: Tensor, exponent: Tensor | number): Tensor {
  if (typeof exponent === "number") {
    frame[0] = handleOf(self, "pow", "self");
    frame[1] = exponent;
    return adopt(call(38));
  }
  frame[0] = handleOf(self, "pow", "self");
  frame[1] = handleOf(exponent, "pow", "exponent");
  return adopt(call(37));
}

/**
 * self to the power of exponent, in place.
 *
 * `aten::pow_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)`
 * `aten::pow_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)`
 */
export function pow_(self: Tensor, exponent: Tensor | number): Tensor {
  if (typeof exponent === "number") {
    frame[0] = handleOf(self, "pow_", "self");
    frame[1] = exponent;
    call(40);
    return self;
  }
  frame[0] = handleOf(self, "pow_", "self");
  frame[1] = handleOf(exponent, "pow_", "exponent");
  call(39);
  return self;
}

/**
 * eˣ.
 *
 * `aten::exp(Tensor self) -> Tensor`
 */
export function exp(self: Tensor): Tensor {
  frame[0] = handleOf(self, "exp", "self");
  return adopt(call(41));
}

/**
 * eˣ, in place.
 *
 * `aten::exp_(Tensor(a!) self) -> Tensor(a!)`
 */
export function exp_(self: Tensor): Tensor {
  frame[0] = handleOf(self, "exp_", "self");
  call(42);
  return self;
}

/**
 * 2ˣ.
 *
 * `aten::exp2(Tensor self) -> Tensor`
 */
export function exp2(self: Tensor): Tensor {
  frame[0] = handleOf(self, "exp2", "self");
  return adopt(call(43));
}

/**
 * eˣ − 1, exact near 0.
 *
 * `aten::expm1(Tensor self) -> Tensor`
 */
export function expm1(self: Tensor): Tensor {
  frame[0] = handleOf(self, "expm1", "self");
  return adopt(call(44));
}

/**
 * Natural logarithm.
 *
 * `aten::log(Tensor self) -> Tensor`
 */
export function log(self: Tensor): Tensor {
  frame[0] = handleOf(self, "log", "self");
  return adopt(call(45));
}

/**
 * Natural logarithm, in place.
 *
 * `aten::log_(Tensor(a!) self) -> Tensor(a!)`
 */
export function log_(self: Tensor): Tensor {
  frame[0] = handleOf(self, "log_", "self");
  call(46);
  return self;
}

/**
 * ln(1 + self), exact near 0.
 *
 * `aten::log1p(Tensor self) -> Tensor`
 */
export function log1p(self: Tensor): Tensor {
  frame[0] = handleOf(self, "log1p", "self");
  return adopt(call(47));
}

/**
 * Logarithm to base 2.
 *
 * `aten::log2(Tensor self) -> Tensor`
 */
export function log2(self: Tensor): Tensor {
  frame[0] = handleOf(self, "log2", "self");
  return adopt(call(48));
}

/**
 * Logarithm to base 10.
 *
 * `aten::log10(Tensor self) -> Tensor`
 */
export function log10(self: Tensor): Tensor {
  frame[0] = handleOf(self, "log10", "self");
  return adopt(call(49));
}

/**
 * ln(eˢᵉˡᶠ + eᵒᵗʰᵉʳ) without overflow.
 *
 * `aten::logaddexp(Tensor self, Tensor other) -> Tensor`
 */
export function logaddexp(self: Tensor, other: Tensor): Tensor {
  frame[0] = handleOf(self, "logaddexp", "self");
  frame[1] = handleOf(other, "logaddexp", "other");
  return adopt(call(50));
}

/**
 * Sine, radians.
 *
 * `aten::sin(Tensor self) -> Tensor`
 */
export function sin(self: Tensor): Tensor {
  frame[0] = handleOf(self, "sin", "self");
  return adopt(call(51));
}

/**
 * Cosine, radians.
 *
 * `aten::cos(Tensor self) -> Tensor`
 */
export function cos(self: Tensor): Tensor {
  frame[0] = handleOf(self, "cos", "self");
  return adopt(call(52));
}

/**
 * Error function.
 *
 * `aten::erf(Tensor self) -> Tensor`
 */
export function erf(self: Tensor): Tensor {
  frame[0] = handleOf(self, "erf", "self");
  return adopt(call(53));
}

/**
 * Largest integer not above.
 *
 * `aten::floor(Tensor self) -> Tensor`
 */
export function floor(self: Tensor): Tensor {
  frame[0] = handleOf(self, "floor", "self");
  return adopt(call(54));
}

/**
 * Largest integer not above, in place.
 *
 * `aten::floor_(Tensor(a!) self) -> Tensor(a!)`
 */
export function floor_(self: Tensor): Tensor {
  frame[0] = handleOf(self, "floor_", "self");
  call(55);
  return self;
}

/**
 * Smallest integer not below.
 *
 * `aten::ceil(Tensor self) -> Tensor`
 */
export function ceil(self: Tensor): Tensor {
  frame[0] = handleOf(self, "ceil", "self");
  return adopt(call(56));
}

/**
 * Smallest integer not below, in place.
 *
 * `aten::ceil_(Tensor(a!) self) -> Tensor(a!)`
 */
export function ceil_(self: Tensor): Tensor {
  frame[0] = handleOf(self, "ceil_", "self");
  call(57);
  return self;
}

/**
 * Nearest integer, halves to even.
 *
 * `aten::round(Tensor self) -> Tensor`
 */
export function round(self: Tensor): Tensor {
  frame[0] = handleOf(self, "round", "self");
  return adopt(call(58));
}

/**
 * Nearest integer, halves to even, in place.
 *
 * `aten::round_(Tensor(a!) self) -> Tensor(a!)`
 */
export function round_(self: Tensor): Tensor {
  frame[0] = handleOf(self, "round_", "self");
  call(59);
  return self;
}

/**
 * Integer part.
 *
 * `aten::trunc(Tensor self) -> Tensor`
 */
export function trunc(self: Tensor): Tensor {
  frame[0] = handleOf(self, "trunc", "self");
  return adopt(call(60));
}

/**
 * Fractional part.
 *
 * `aten::frac(Tensor self) -> Tensor`
 */
export function frac(self: Tensor): Tensor {
  frame[0] = handleOf(self, "frac", "self");
  return adopt(call(61));
}

/**
 * Limits each element to [min, max]; an absent limit is none.
 *
 * `aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor`
 */
export function clamp(self: Tensor, min?: number, max?: number): Tensor {
  frame[0] = handleOf(self, "clamp", "self");
  frame[1] = min === undefined ? 0 : 1;
  frame[2] = min === undefined ? 0 : min;
  frame[3] = max === undefined ? 0 : 1;
  frame[4] = max === undefined ? 0 : max;
  return adopt(call(62));
}

/**
 * Limits each element to [min, max]; an absent limit is none, in place.
 *
 * `aten::clamp_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor(a!)`
 */
export function clamp_(self: Tensor, min?: number, max?: number): Tensor {
  frame[0] = handleOf(self, "clamp_", "self");
  frame[1] = min === undefined ? 0 : 1;
  frame[2] = min === undefined ? 0 : min;
  frame[3] = max === undefined ? 0 : 1;
  frame[4] = max === undefined ? 0 : max;
  call(63);
  return self;
}

/**
 * max(self, min).
 *
 * `aten::clamp_min(Tensor self, Scalar min) -> Tensor`
 * `aten::clamp_min.Tensor(Tensor self, Tensor min) -> Tensor`
 */
export function clampMin(self: Tensor, min: number | Tensor): Tensor {
  if (typeof min === "number") {
    frame[0] = handleOf(self, "clampMin", "self");
    frame[1] = min;
    return adopt(call(64));
  }
  frame[0] = handleOf(self, "clampMin", "self");
  frame[1] = handleOf(min, "clampMin", "min");
  return adopt(call(65));
}

/**
 * max(self, min), in place.
 *
 * `aten::clamp_min_(Tensor(a!) self, Scalar min) -> Tensor(a!)`
 * `aten::clamp_min_.Tensor(Tensor(a!) self, Tensor min) -> Tensor(a!)`
 */
export function clampMin_(self: Tensor, min: number | Tensor): Tensor {
  if (typeof min === "number") {
    frame[0] = handleOf(self, "clampMin_", "self");
    frame[1] = min;
    call(66);
    return self;
  }
  frame[0] = handleOf(self, "clampMin_", "self");
  frame[1] = handleOf(min, "clampMin_", "min");
  call(67);
  return self;
}

/**
 * min(self, max).
 *
 * `aten::clamp_max(Tensor self, Scalar max) -> Tensor`
 * `aten::clamp_max.Tensor(Tensor self, Tensor max) -> Tensor`
 */
export function clampMax(self: Tensor, max: number | Tensor): Tensor {
  if (typeof max === "number") {
    frame[0] = handleOf(self, "clampMax", "self");
    frame[1] = max;
    return adopt(call(68));
  }
  frame[0] = handleOf(self, "clampMax", "self");
  frame[1] = handleOf(max, "clampMax", "max");
  return adopt(call(69));
}

/**
 * min(self, max), in place.
 *
 * `aten::clamp_max_(Tensor(a!) self, Scalar max) -> Tensor(a!)`
 * `aten::clamp_max_.Tensor(Tensor(a!) self, Tensor max) -> Tensor(a!)`
 */
export function clampMax_(self: Tensor, max: number | Tensor): Tensor {
  if (typeof max === "number") {
    frame[0] = handleOf(self, "clampMax_", "self");
    frame[1] = max;
    call(70);
    return self;
  }
  frame[0] = handleOf(self, "clampMax_", "self");
  frame[1] = handleOf(max, "clampMax_", "max");
  call(71);
  return self;
}

/**
 * Elementwise larger of two tensors.
 *
 * `aten::maximum(Tensor self, Tensor other) -> Tensor`
 */
export function maximum(self: Tensor, other: Tensor): Tensor {
  frame[0] = handleOf(self, "maximum", "self");
  frame[1] = handleOf(other, "maximum", "other");
  return adopt(call(72));
}

/**
 * Elementwise smaller of two tensors.
 *
 * `aten::minimum(Tensor self, Tensor other) -> Tensor`
 */
export function minimum(self: Tensor, other: Tensor): Tensor {
  frame[0] = handleOf(self, "minimum", "self");
  frame[1] = handleOf(other, "minimum", "other");
  return adopt(call(73));
}

/**
 * self + value · tensor1 · tensor2.
 *
 * `aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor`
 */
export function addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, value = 1): Tensor {
  frame[0] = handleOf(self, "addcmul", "self");
  frame[1] = handleOf(tensor1, "addcmul", "tensor1");
  frame[2] = handleOf(tensor2, "addcmul", "tensor2");
  frame[3] = value;
  return adopt(call(74));
}

/**
 * self + value · tensor1 · tensor2, in place.
 *
 * `aten::addcmul_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)`
 */
export function addcmul_(self: Tensor, tensor1: Tensor, tensor2: Tensor, value = 1): Tensor {
  frame[0] = handleOf(self, "addcmul_", "self");
  frame[1] = handleOf(tensor1, "addcmul_", "tensor1");
  frame[2] = handleOf(tensor2, "addcmul_", "tensor2");
  frame[3] = value;
  call(75);
  return self;
}

/**
 * self + value · tensor1 / tensor2.
 *
 * `aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor`
 */
export function addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, value = 1): Tensor {
  frame[0] = handleOf(self, "addcdiv", "self");
  frame[1] = handleOf(tensor1, "addcdiv", "tensor1");
  frame[2] = handleOf(tensor2, "addcdiv", "tensor2");
  frame[3] = value;
  return adopt(call(76));
}

/**
 * self + value · tensor1 / tensor2, in place.
 *
 * `aten::addcdiv_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)`
 */
export function addcdiv_(self: Tensor, tensor1: Tensor, tensor2: Tensor, value = 1): Tensor {
  frame[0] = handleOf(self, "addcdiv_", "self");
  frame[1] = handleOf(tensor1, "addcdiv_", "tensor1");
  frame[2] = handleOf(tensor2, "addcdiv_", "tensor2");
  frame[3] = value;
  call(77);
  return self;
}

/**
 * self + weight · (end − self).
 *
 * `aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor`
 * `aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor`
 */
export function lerp(self: Tensor, end: Tensor, weight: number | Tensor): Tensor {
  if (typeof weight === "number") {
    frame[0] = handleOf(self, "lerp", "self");
    frame[1] = handleOf(end, "lerp", "end");
    frame[2] = weight;
    return adopt(call(78));
  }
  frame[0] = handleOf(self, "lerp", "self");
  frame[1] = handleOf(end, "lerp", "end");
  frame[2] = handleOf(weight, "lerp", "weight");
  return adopt(call(79));
}

/**
 * self + weight · (end − self), in place.
 *
 * `aten::lerp_.Scalar(Tensor(a!) self, Tensor end, Scalar weight) -> Tensor(a!)`
 * `aten::lerp_.Tensor(Tensor(a!) self, Tensor end, Tensor weight) -> Tensor(a!)`
 */
export function lerp_(self: Tensor, end: Tensor, weight: number | Tensor): Tensor {
  if (typeof weight === "number") {
    frame[0] = handleOf(self, "lerp_", "self");
    frame[1] = handleOf(end, "lerp_", "end");
    frame[2] = weight;
    call(80);
    return self;
  }
  frame[0] = handleOf(self, "lerp_", "self");
  frame[1] = handleOf(end, "lerp_", "end");
  frame[2] = handleOf(weight, "lerp_", "weight");
  call(81);
  return self;
}

/**
 * Replaces NaN and infinities by numbers.
 *
 * `aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor`
 */
export function nanToNum(self: Tensor, nan?: number, posinf?: number, neginf?: number): Tensor {
  frame[0] = handleOf(self, "nanToNum", "self");
  frame[1] = nan === undefined ? 0 : 1;
  frame[2] = nan === undefined ? 0 : nan;
  frame[3] = posinf === undefined ? 0 : 1;
  frame[4] = posinf === undefined ? 0 : posinf;
  frame[5] = neginf === undefined ? 0 : 1;
  frame[6] = neginf === undefined ? 0 : neginf;
  return adopt(call(82));
}

/**
 * Replaces NaN and infinities by numbers, in place.
 *
 * `aten::nan_to_num_(Tensor(a!) self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor(a!)`
 */
export function nanToNum_(self: Tensor, nan?: number, posinf?: number, neginf?: number): Tensor {
  frame[0] = handleOf(self, "nanToNum_", "self");
  frame[1] = nan === undefined ? 0 : 1;
  frame[2] = nan === undefined ? 0 : nan;
  frame[3] = posinf === undefined ? 0 : 1;
  frame[4] = posinf === undefined ? 0 : posinf;
  frame[5] = neginf === undefined ? 0 : 1;
  frame[6] = neginf === undefined ? 0 : neginf;
  call(83);
  return self;
}

/**
 * Where elements are NaN.
 *
 * `aten::isnan(Tensor self) -> Tensor`
 */
export function isnan(self: Tensor): Tensor {
  frame[0] = handleOf(self, "isnan", "self");
  return adopt(call(84));
}

/**
 * Where elements are infinite.
 *
 * `aten::isinf(Tensor self) -> Tensor`
 */
export function isinf(self: Tensor): Tensor {
  frame[0] = handleOf(self, "isinf", "self");
  return adopt(call(85));
}

/**
 * Where elements are finite.
 *
 * `aten::isfinite(Tensor self) -> Tensor`
 */
export function isfinite(self: Tensor): Tensor {
  frame[0] = handleOf(self, "isfinite", "self");
  return adopt(call(86));
}

/**
 * max(self, 0).
 *
 * `aten::relu(Tensor self) -> Tensor`
 */
export function relu(self: Tensor): Tensor {
  frame[0] = handleOf(self, "relu", "self");
  return adopt(call(87));
}

/**
 * max(self, 0), in place.
 *
 * `aten::relu_(Tensor(a!) self) -> Tensor(a!)`
 */
export function relu_(self: Tensor): Tensor {
  frame[0] = handleOf(self, "relu_", "self");
  call(88);
  return self;
}

/**
 * Gaussian error linear unit; approximate: "none" or "tanh" (Hendrycks & Gimpel 2016).
 *
 * `aten::gelu(Tensor self, *, str approximate="none") -> Tensor`
 */
export function gelu(self: Tensor, approximate = "none"): Tensor {
  frame[0] = handleOf(self, "gelu", "self");
  frame[1] = intern(approximate);
  return adopt(call(89));
}

/**
 * Gaussian error linear unit; approximate: "none" or "tanh" (Hendrycks & Gimpel 2016), in place.
 *
 * `aten::gelu_(Tensor(a!) self, *, str approximate="none") -> Tensor(a!)`
 */
export function gelu_(self: Tensor, approximate = "none"): Tensor {
  frame[0] = handleOf(self, "gelu_", "self");
  frame[1] = intern(approximate);
  call(90);
  return self;
}

/**
 * Gradient of gelu.
 *
 * `aten::gelu_backward(Tensor grad_output, Tensor self, *, str approximate="none") -> Tensor`
 */
export function geluBackward(gradOutput: Tensor, self: Tensor, approximate = "none"): Tensor {
  frame[0] = handleOf(gradOutput, "geluBackward", "gradOutput");
  frame[1] = handleOf(self, "geluBackward", "self");
  frame[2] = intern(approximate);
  return adopt(call(91));
}

/**
 * self · sigmoid(self), also called swish.
 *
 * `aten::silu(Tensor self) -> Tensor`
 */
export function silu(self: Tensor): Tensor {
  frame[0] = handleOf(self, "silu", "self");
  return adopt(call(92));
}

/**
 * self · sigmoid(self), also called swish, in place.
 *
 * `aten::silu_(Tensor(a!) self) -> Tensor(a!)`
 */
export function silu_(self: Tensor): Tensor {
  frame[0] = handleOf(self, "silu_", "self");
  call(93);
  return self;
}

/**
 * self · tanh(softplus(self)).
 *
 * `aten::mish(Tensor self) -> Tensor`
 */
export function mish(self: Tensor): Tensor {
  frame[0] = handleOf(self, "mish", "self");
  return adopt(call(94));
}

/**
 * 1 / (1 + e⁻ˣ).
 *
 * `aten::sigmoid(Tensor self) -> Tensor`
 */
export function sigmoid(self: Tensor): Tensor {
  frame[0] = handleOf(self, "sigmoid", "self");
  return adopt(call(95));
}

/**
 * 1 / (1 + e⁻ˣ), in place.
 *
 * `aten::sigmoid_(Tensor(a!) self) -> Tensor(a!)`
 */
export function sigmoid_(self: Tensor): Tensor {
  frame[0] = handleOf(self, "sigmoid_", "self");
  call(96);
  return self;
}

/**
 * ln sigmoid(self) without overflow.
 *
 * `aten::log_sigmoid(Tensor self) -> Tensor`
 */
export function logSigmoid(self: Tensor): Tensor {
  frame[0] = handleOf(self, "logSigmoid", "self");
  return adopt(call(97));
}

/**
 * Hyperbolic tangent.
 *
 * `aten::tanh(Tensor self) -> Tensor`
 */
export function tanh(self: Tensor): Tensor {
  frame[0] = handleOf(self, "tanh", "self");
  return adopt(call(98));
}

/**
 * Hyperbolic tangent, in place.
 *
 * `aten::tanh_(Tensor(a!) self) -> Tensor(a!)`
 */
export function tanh_(self: Tensor): Tensor {
  frame[0] = handleOf(self, "tanh_", "self");
  call(99);
  return self;
}

/**
 * ln(1 + eᵝˣ) / β.
 *
 * `aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor`
 */
export function softplus(self: Tensor, beta = 1, threshold = 20): Tensor {
  frame[0] = handleOf(self, "softplus", "self");
  frame[1] = beta;
  frame[2] = threshold;
  return adopt(call(100));
}

/**
 * self where positive, else alpha · (eˣ − 1).
 *
 * `aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor`
 */
export function elu(self: Tensor, alpha = 1, scale = 1, inputScale = 1): Tensor {
  frame[0] = handleOf(self, "elu", "self");
  frame[1] = alpha;
  frame[2] = scale;
  frame[3] = inputScale;
  return adopt(call(101));
}

/**
 * self where positive, else negativeSlope · self.
 *
 * `aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor`
 */
export function leakyRelu(self: Tensor, negativeSlope = 0.01): Tensor {
  frame[0] = handleOf(self, "leakyRelu", "self");
  frame[1] = negativeSlope;
  return adopt(call(102));
}

/**
 * Limits to [minVal, maxVal].
 *
 * `aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor`
 */
export function hardtanh(self: Tensor, minVal = -1, maxVal = 1): Tensor {
  frame[0] = handleOf(self, "hardtanh", "self");
  frame[1] = minVal;
  frame[2] = maxVal;
  return adopt(call(103));
}

/**
 * Piecewise linear sigmoid.
 *
 * `aten::hardsigmoid(Tensor self) -> Tensor`
 */
export function hardsigmoid(self: Tensor): Tensor {
  frame[0] = handleOf(self, "hardsigmoid", "self");
  return adopt(call(104));
}

/**
 * self · hardsigmoid(self).
 *
 * `aten::hardswish(Tensor self) -> Tensor`
 */
export function hardswish(self: Tensor): Tensor {
  frame[0] = handleOf(self, "hardswish", "self");
  return adopt(call(105));
}

/**
 * Limits to [0, 6].
 *
 * `aten::relu6(Tensor self) -> Tensor`
 */
export function relu6(self: Tensor): Tensor {
  frame[0] = handleOf(self, "relu6", "self");
  return adopt(call(106));
}

/**
 * First half of dim times the sigmoid of the second half (Dauphin et al. 2017).
 *
 * `aten::glu(Tensor self, int dim=-1) -> Tensor`
 */
export function glu(self: Tensor, dim = -1): Tensor {
  frame[0] = handleOf(self, "glu", "self");
  frame[1] = dim;
  return adopt(call(107));
}

/**
 * eˣ / Σ eˣ over dim.
 *
 * `aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor`
 */
export function softmax(self: Tensor, dim: number, dtype?: DType): Tensor {
  frame[0] = handleOf(self, "softmax", "self");
  frame[1] = dim;
  frame[2] = dtype === undefined ? 0 : 1;
  frame[3] = dtype === undefined ? 0 : dtypeCode(dtype);
  return adopt(call(108));
}

/**
 * ln softmax over dim, without overflow.
 *
 * `aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor`
 */
export function logSoftmax(self: Tensor, dim: number, dtype?: DType): Tensor {
  frame[0] = handleOf(self, "logSoftmax", "self");
  frame[1] = dim;
  frame[2] = dtype === undefined ? 0 : 1;
  frame[3] = dtype === undefined ? 0 : dtypeCode(dtype);
  return adopt(call(109));
}

/**
 * Where self = other.
 *
 * `aten::eq.Tensor(Tensor self, Tensor other) -> Tensor`
 * `aten::eq.Scalar(Tensor self, Scalar other) -> Tensor`
 */
export function eq(self: Tensor, other: Tensor | number): Tensor {
  if (typeof other === "number") {
    frame[0] = handleOf(self, "eq", "self");
    frame[1] = other;
    return adopt(call(111));
  }
  frame[0] = handleOf(self, "eq", "self");
  frame[1] = handleOf(other, "eq", "other");
  return adopt(call(110));
}

/**
 * Where self = other, in place.
 *
 * `aten::eq_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)`
 * `aten::eq_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)`
 */
export function eq_(self: Tensor, other: Tensor | number): Tensor {
  if (typeof other === "number") {
    frame[0] = handleOf(self, "eq_", "self");
    frame[1] = other;
    call(113);
    return self;
  }
  frame[0] = handleOf(self, "eq_", "self");
  frame[1] = handleOf(other, "eq_", "other");
  call(112);
  return self;
}

/**
 * Where self ≠ other.
 *
 * `aten::ne.Tensor(Tensor self, Tensor other) -> Tensor`
 * `aten::ne.Scalar(Tensor self, Scalar other) -> Tensor`
 */
export function ne(self: Tensor, other: Tensor | number): Tensor {
  if (typeof other === "number") {
    frame[0] = handleOf(self, "ne", "self");
    frame[1] = other;
    return adopt(call(115));
  }
  frame[0] = handleOf(self, "ne", "self");
  frame[1] = handleOf(other, "ne", "other");
  return adopt(call(114));
}

/**
 * Where self < other.
 *
 * `aten::lt.Tensor(Tensor self, Tensor other) -> Tensor`
 * `aten::lt.Scalar(Tensor self, Scalar other) -> Tensor`
 */
export function lt(self: Tensor, other: Tensor | number): Tensor {
  if (typeof other === "number") {
    frame[0] = handleOf(self, "lt", "self");
    frame[1] = other;
    return adopt(call(117));
  }
  frame[0] = handleOf(self, "lt", "self");
  frame[1] = handleOf(other, "lt", "other");
  return adopt(call(116));
}

/**
 * Where self ≤ other.
 *
 * `aten::le.Tensor(Tensor self, Tensor other) -> Tensor`
 * `aten::le.Scalar(Tensor self, Scalar other) -> Tensor`
 */
export function le(self: Tensor, other: Tensor | number): Tensor {
  if (typeof other === "number") {
    frame[0] = handleOf(self, "le", "self");
    frame[1] = other;
    return adopt(call(119));
  }
  frame[0] = handleOf(self, "le", "self");
  frame[1] = handleOf(other, "le", "other");
  return adopt(call(118));
}

/**
 * Where self > other.
 *
 * `aten::gt.Tensor(Tensor self, Tensor other) -> Tensor`
 * `aten::gt.Scalar(Tensor self, Scalar other) -> Tensor`
 */
export function gt(self: Tensor, other: Tensor | number): Tensor {
  if (typeof other === "number") {
    frame[0] = handleOf(self, "gt", "self");
    frame[1] = other;
    return adopt(call(121));
  }
  frame[0] = handleOf(self, "gt", "self");
  frame[1] = handleOf(other, "gt", "other");
  return adopt(call(120));
}

/**
 * Where self ≥ other.
 *
 * `aten::ge.Tensor(Tensor self, Tensor other) -> Tensor`
 * `aten::ge.Scalar(Tensor self, Scalar other) -> Tensor`
 */
export function ge(self: Tensor, other: Tensor | number): Tensor {
  if (typeof other === "number") {
    frame[0] = handleOf(self, "ge", "self");
    frame[1] = other;
    return adopt(call(123));
  }
  frame[0] = handleOf(self, "ge", "self");
  frame[1] = handleOf(other, "ge", "other");
  return adopt(call(122));
}

/**
 * Elementwise and.
 *
 * `aten::logical_and(Tensor self, Tensor other) -> Tensor`
 */
export function logicalAnd(self: Tensor, other: Tensor): Tensor {
  frame[0] = handleOf(self, "logicalAnd", "self");
  frame[1] = handleOf(other, "logicalAnd", "other");
  return adopt(call(124));
}

/**
 * Elementwise and, in place.
 *
 * `aten::logical_and_(Tensor(a!) self, Tensor other) -> Tensor(a!)`
 */
export function logicalAnd_(self: Tensor, other: Tensor): Tensor {
  frame[0] = handleOf(self, "logicalAnd_", "self");
  frame[1] = handleOf(other, "logicalAnd_", "other");
  call(125);
  return self;
}

/**
 * Elementwise or.
 *
 * `aten::logical_or(Tensor self, Tensor other) -> Tensor`
 */
export function logicalOr(self: Tensor, other: Tensor): Tensor {
  frame[0] = handleOf(self, "logicalOr", "self");
  frame[1] = handleOf(other, "logicalOr", "other");
  return adopt(call(126));
}

/**
 * Elementwise or, in place.
 *
 * `aten::logical_or_(Tensor(a!) self, Tensor other) -> Tensor(a!)`
 */
export function logicalOr_(self: Tensor, other: Tensor): Tensor {
  frame[0] = handleOf(self, "logicalOr_", "self");
  frame[1] = handleOf(other, "logicalOr_", "other");
  call(127);
  return self;
}

/**
 * Elementwise exclusive or.
 *
 * `aten::logical_xor(Tensor self, Tensor other) -> Tensor`
 */
export function logicalXor(self: Tensor, other: Tensor): Tensor {
  frame[0] = handleOf(self, "logicalXor", "self");
  frame[1] = handleOf(other, "logicalXor", "other");
  return adopt(call(128));
}

/**
 * Elementwise not.
 *
 * `aten::logical_not(Tensor self) -> Tensor`
 */
export function logicalNot(self: Tensor): Tensor {
  frame[0] = handleOf(self, "logicalNot", "self");
  return adopt(call(129));
}

/**
 * Elementwise not, in place.
 *
 * `aten::logical_not_(Tensor(a!) self) -> Tensor(a!)`
 */
export function logicalNot_(self: Tensor): Tensor {
  frame[0] = handleOf(self, "logicalNot_", "self");
  call(130);
  return self;
}

/**
 * Bitwise and of integers, and of bools.
 *
 * `aten::bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor`
 * `aten::bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor`
 */
export function bitwiseAnd(self: Tensor, other: Tensor | number): Tensor {
  if (typeof other === "number") {
    frame[0] = handleOf(self, "bitwiseAnd", "self");
    frame[1] = other;
    return adopt(call(132));
  }
  frame[0] = handleOf(self, "bitwiseAnd", "self");
  frame[1] = handleOf(other, "bitwiseAnd", "other");
  return adopt(call(131));
}

/**
 * Bitwise or of integers, or of bools.
 *
 * `aten::bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor`
 * `aten::bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor`
 */
export function bitwiseOr(self: Tensor, other: Tensor | number): Tensor {
  if (typeof other === "number") {
    frame[0] = handleOf(self, "bitwiseOr", "self");
    frame[1] = other;
    return adopt(call(134));
  }
  frame[0] = handleOf(self, "bitwiseOr", "self");
  frame[1] = handleOf(other, "bitwiseOr", "other");
  return adopt(call(133));
}

/**
 * Bitwise exclusive or.
 *
 * `aten::bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor`
 * `aten::bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor`
 */
export function bitwiseXor(self: Tensor, other: Tensor | number): Tensor {
  if (typeof other === "number") {
    frame[0] = handleOf(self, "bitwiseXor", "self");
    frame[1] = other;
    return adopt(call(136));
  }
  frame[0] = handleOf(self, "bitwiseXor", "self");
  frame[1] = handleOf(other, "bitwiseXor", "other");
  return adopt(call(135));
}

/**
 * Bitwise complement of integers, not of bools.
 *
 * `aten::bitwise_not(Tensor self) -> Tensor`
 */
export function bitwiseNot(self: Tensor): Tensor {
  frame[0] = handleOf(self, "bitwiseNot", "self");
  return adopt(call(137));
}

/**
 * Whether shapes and all elements are the same.
 *
 * `aten::equal(Tensor self, Tensor other) -> bool`
 */
export function equal(self: Tensor, other: Tensor): boolean {
  frame[0] = handleOf(self, "equal", "self");
  frame[1] = handleOf(other, "equal", "other");
  return call(138) !== 0;
}

/**
 * Where |self − other| ≤ atol + rtol · |other|.
 *
 * `aten::isclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool equal_nan=False) -> Tensor`
 */
export function isclose(self: Tensor, other: Tensor, rtol = 0.00001, atol = 1e-8, equalNan = false): Tensor {
  frame[0] = handleOf(self, "isclose", "self");
  frame[1] = handleOf(other, "isclose", "other");
  frame[2] = rtol;
  frame[3] = atol;
  frame[4] = equalNan ? 1 : 0;
  return adopt(call(139));
}

/**
 * Whether isclose holds everywhere.
 *
 * `aten::allclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool equal_nan=False) -> bool`
 */
export function allclose(self: Tensor, other: Tensor, rtol = 0.00001, atol = 1e-8, equalNan = false): boolean {
  frame[0] = handleOf(self, "allclose", "self");
  frame[1] = handleOf(other, "allclose", "other");
  frame[2] = rtol;
  frame[3] = atol;
  frame[4] = equalNan ? 1 : 0;
  return call(140) !== 0;
}

/**
 * Whether any element is true (0-dim bool tensor).
 *
 * `aten::any(Tensor self) -> Tensor`
 */
export function any(self: Tensor): Tensor {
  frame[0] = handleOf(self, "any", "self");
  return adopt(call(141));
}

/**
 * Whether any element along dim is true.
 *
 * `aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor`
 */
export function anyDim(self: Tensor, dim: number, keepdim = false): Tensor {
  frame[0] = handleOf(self, "anyDim", "self");
  frame[1] = dim;
  frame[2] = keepdim ? 1 : 0;
  return adopt(call(142));
}

/**
 * Whether every element is true (0-dim bool tensor).
 *
 * `aten::all(Tensor self) -> Tensor`
 */
export function all(self: Tensor): Tensor {
  frame[0] = handleOf(self, "all", "self");
  return adopt(call(143));
}

/**
 * Whether every element along dim is true.
 *
 * `aten::all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor`
 */
export function allDim(self: Tensor, dim: number, keepdim = false): Tensor {
  frame[0] = handleOf(self, "allDim", "self");
  frame[1] = dim;
  frame[2] = keepdim ? 1 : 0;
  return adopt(call(144));
}

/**
 * Sum over dim, or over all when dim is undefined.
 *
 * `aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor`
 */
export function sum(self: Tensor, dim?: number | readonly number[], keepdim = false, dtype?: DType): Tensor {
  frame[0] = handleOf(self, "sum", "self");
  const next = putOptionalNumbers(1, dim, "sum", "dim");
  frame[next] = keepdim ? 1 : 0;
  frame[next + 1] = dtype === undefined ? 0 : 1;
  frame[next + 2] = dtype === undefined ? 0 : dtypeCode(dtype);
  return adopt(call(145));
}

/**
 * Mean over dim, or over all when dim is undefined.
 *
 * `aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor`
 */
export function mean(self: Tensor, dim?: number | readonly number[], keepdim = false, dtype?: DType): Tensor {
  frame[0] = handleOf(self, "mean", "self");
  const next = putOptionalNumbers(1, dim, "mean", "dim");
  frame[next] = keepdim ? 1 : 0;
  frame[next + 1] = dtype === undefined ? 0 : 1;
  frame[next + 2] = dtype === undefined ? 0 : dtypeCode(dtype);
  return adopt(call(146));
}

/**
 * Product of all elements.
 *
 * `aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor`
 */
export function prod(self: Tensor, dtype?: DType): Tensor {
  frame[0] = handleOf(self, "prod", "self");
  frame[1] = dtype === undefined ? 0 : 1;
  frame[2] = dtype === undefined ? 0 : dtypeCode(dtype);
  return adopt(call(147));
}

/**
 * Product along dim.
 *
 * `aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor`
 */
export function prodDim(self: Tensor, dim: number, keepdim = false, dtype?: DType): Tensor {
  frame[0] = handleOf(self, "prodDim", "self");
  frame[1] = dim;
  frame[2] = keepdim ? 1 : 0;
  frame[3] = dtype === undefined ? 0 : 1;
  frame[4] = dtype === undefined ? 0 : dtypeCode(dtype);
  return adopt(call(148));
}

/**
 * Largest elements over dim; all when dim is [].
 *
 * `aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor`
 */
export function amax(self: Tensor, dim: number | readonly number[] = [], keepdim = false): Tensor {
  frame[0] = handleOf(self, "amax", "self");
  const next = putNumbers(1, dim, "amax", "dim");
  frame[next] = keepdim ? 1 : 0;
  return adopt(call(149));
}

/**
 * Smallest elements over dim; all when dim is [].
 *
 * `aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor`
 */
export function amin(self: Tensor, dim: number | readonly number[] = [], keepdim = false): Tensor {
  frame[0] = handleOf(self, "amin", "self");
  const next = putNumbers(1, dim, "amin", "dim");
  frame[next] = keepdim ? 1 : 0;
  return adopt(call(150));
}

/**
 * Largest element (0-dim).
 *
 * `aten::max(Tensor self) -> Tensor`
 */
export function max(self: Tensor): Tensor {
  frame[0] = handleOf(self, "max", "self");
  return adopt(call(151));
}

/**
 * Smallest element (0-dim).
 *
 * `aten::min(Tensor self) -> Tensor`
 */
export function min(self: Tensor): Tensor {
  frame[0] = handleOf(self, "min", "self");
  return adopt(call(152));
}

/**
 * Largest elements along dim and their positions.
 *
 * `aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)`
 */
export function maxDim(self: Tensor, dim: number, keepdim = false): [values: Tensor, indices: Tensor] {
  frame[0] = handleOf(self, "maxDim", "self");
  frame[1] = dim;
  frame[2] = keepdim ? 1 : 0;
  call(153);
  return [adoptAt(0), adoptAt(1)];
}

/**
 * Smallest elements along dim and their positions.
 *
 * `aten::min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)`
 */
export function minDim(self: Tensor, dim: number, keepdim = false): [values: Tensor, indices: Tensor] {
  frame[0] = handleOf(self, "minDim", "self");
  frame[1] = dim;
  frame[2] = keepdim ? 1 : 0;
  call(154);
  return [adoptAt(0), adoptAt(1)];
}

/**
 * Position of the largest element, along dim or in the flattened tensor.
 *
 * `aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor`
 */
export function argmax(self: Tensor, dim?: number, keepdim = false): Tensor {
  frame[0] = handleOf(self, "argmax", "self");
  frame[1] = dim === undefined ? 0 : 1;
  frame[2] = dim === undefined ? 0 : dim;
  frame[3] = keepdim ? 1 : 0;
  return adopt(call(155));
}

/**
 * Position of the smallest element, along dim or in the flattened tensor.
 *
 * `aten::argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor`
 */
export function argmin(self: Tensor, dim?: number, keepdim = false): Tensor {
  frame[0] = handleOf(self, "argmin", "self");
  frame[1] = dim === undefined ? 0 : 1;
  frame[2] = dim === undefined ? 0 : dim;
  frame[3] = keepdim ? 1 : 0;
  return adopt(call(156));
}

/**
 * Standard deviation over dim; correction 1 unless given.
 *
 * `aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor`
 */
export function std(self: Tensor, dim?: number | readonly number[], correction?: number, keepdim = false): Tensor {
  frame[0] = handleOf(self, "std", "self");
  const next = putOptionalNumbers(1, dim, "std", "dim");
  frame[next] = correction === undefined ? 0 : 1;
  frame[next + 1] = correction === undefined ? 0 : correction;
  frame[next + 2] = keepdim ? 1 : 0;
  return adopt(call(157));
}

/**
 * Variance over dim; correction 1 unless given.
 *
 * `aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor`
 */
export function variance(self: Tensor, dim?: number | readonly number[], correction?: number, keepdim = false): Tensor {
  frame[0] = handleOf(self, "variance", "self");
  const next = putOptionalNumbers(1, dim, "variance", "dim");
  frame[next] = correction === undefined ? 0 : 1;
  frame[next + 1] = correction === undefined ? 0 : correction;
  frame[next + 2] = keepdim ? 1 : 0;
  return adopt(call(158));
}

/**
 * Variance and mean over dim.
 *
 * `aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)`
 */
export function varMean(self: Tensor, dim?: number | readonly number[], correction?: number, keepdim = false): [result0: Tensor, result1: Tensor] {
  frame[0] = handleOf(self, "varMean", "self");
  const next = putOptionalNumbers(1, dim, "varMean", "dim");
  frame[next] = correction === undefined ? 0 : 1;
  frame[next + 1] = correction === undefined ? 0 : correction;
  frame[next + 2] = keepdim ? 1 : 0;
  call(159);
  return [adoptAt(0), adoptAt(1)];
}

/**
 * ln Σ eˣ over dim without overflow.
 *
 * `aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor`
 */
export function logsumexp(self: Tensor, dim: number | readonly number[], keepdim = false): Tensor {
  frame[0] = handleOf(self, "logsumexp", "self");
  const next = putNumbers(1, dim, "logsumexp", "dim");
  frame[next] = keepdim ? 1 : 0;
  return adopt(call(160));
}

/**
 * Norm of order ord over dim, or over all.
 *
 * `aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor`
 */
export function linalgVectorNorm(self: Tensor, ord = 2, dim?: number | readonly number[], keepdim = false, dtype?: DType): Tensor {
  frame[0] = handleOf(self, "linalgVectorNorm", "self");
  frame[1] = ord;
  const next = putOptionalNumbers(2, dim, "linalgVectorNorm", "dim");
  frame[next] = keepdim ? 1 : 0;
  frame[next + 1] = dtype === undefined ? 0 : 1;
  frame[next + 2] = dtype === undefined ? 0 : dtypeCode(dtype);
  return adopt(call(161));
}

/**
 * Running sum along dim.
 *
 * `aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor`
 */
export function cumsum(self: Tensor, dim: number, dtype?: DType): Tensor {
  frame[0] = handleOf(self, "cumsum", "self");
  frame[1] = dim;
  frame[2] = dtype === undefined ? 0 : 1;
  frame[3] = dtype === undefined ? 0 : dtypeCode(dtype);
  return adopt(call(162));
}

/**
 * Running sum along dim, in place.
 *
 * `aten::cumsum_(Tensor(a!) self, int dim, *, ScalarType? dtype=None) -> Tensor(a!)`
 */
export function cumsum_(self: Tensor, dim: number, dtype?: DType): Tensor {
  frame[0] = handleOf(self, "cumsum_", "self");
  frame[1] = dim;
  frame[2] = dtype === undefined ? 0 : 1;
  frame[3] = dtype === undefined ? 0 : dtypeCode(dtype);
  call(163);
  return self;
}

/**
 * Running product along dim.
 *
 * `aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor`
 */
export function cumprod(self: Tensor, dim: number, dtype?: DType): Tensor {
  frame[0] = handleOf(self, "cumprod", "self");
  frame[1] = dim;
  frame[2] = dtype === undefined ? 0 : 1;
  frame[3] = dtype === undefined ? 0 : dtypeCode(dtype);
  return adopt(call(164));
}

/**
 * Number of elements that are not zero over dim.
 *
 * `aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor`
 */
export function countNonzero(self: Tensor, dim: readonly number[]): Tensor {
  frame[0] = handleOf(self, "countNonzero", "self");
  putNumbers(1, dim, "countNonzero", "dim");
  return adopt(call(165));
}

/**
 * Median of all elements.
 *
 * `aten::median(Tensor self) -> Tensor`
 */
export function median(self: Tensor): Tensor {
  frame[0] = handleOf(self, "median", "self");
  return adopt(call(166));
}

/**
 * Sorted along dim, and the positions.
 *
 * `aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)`
 */
export function sort(self: Tensor, dim = -1, descending = false): [values: Tensor, indices: Tensor] {
  frame[0] = handleOf(self, "sort", "self");
  frame[1] = dim;
  frame[2] = descending ? 1 : 0;
  call(167);
  return [adoptAt(0), adoptAt(1)];
}

/**
 * Positions that sort along dim.
 *
 * `aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor`
 */
export function argsort(self: Tensor, dim = -1, descending = false): Tensor {
  frame[0] = handleOf(self, "argsort", "self");
  frame[1] = dim;
  frame[2] = descending ? 1 : 0;
  return adopt(call(168));
}

/**
 * The k largest (or smallest) along dim, and their positions.
 *
 * `aten::topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)`
 */
export function topk(self: Tensor, k: number, dim = -1, largest = true, sorted = true): [values: Tensor, indices: Tensor] {
  frame[0] = handleOf(self, "topk", "self");
  frame[1] = k;
  frame[2] = dim;
  frame[3] = largest ? 1 : 0;
  frame[4] = sorted ? 1 : 0;
  call(169);
  return [adoptAt(0), adoptAt(1)];
}

/**
 * The k-th smallest along dim, and its position.
 *
 * `aten::kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)`
 */
export function kthvalue(self: Tensor, k: number, dim = -1, keepdim = false): [values: Tensor, indices: Tensor] {
  frame[0] = handleOf(self, "kthvalue", "self");
  frame[1] = k;
  frame[2] = dim;
  frame[3] = keepdim ? 1 : 0;
  call(170);
  return [adoptAt(0), adoptAt(1)];
}

/**
 * How often each integer occurs.
 *
 * `aten::bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor`
 */
export function bincount(self: Tensor, weights?: Tensor, minlength = 0): Tensor {
  frame[0] = handleOf(self, "bincount", "self");
  frame[1] = weights === undefined ? 0 : 1;
  frame[2] = weights === undefined ? 0 : handleOf(weights, "bincount", "weights");
  frame[3] = minlength;
  return adopt(call(171));
}

/**
 * Histogram of bins equal steps between min and max.
 *
 * `aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor`
 */
export function histc(self: Tensor, bins = 100, min = 0, max = 0): Tensor {
  frame[0] = handleOf(self, "histc", "self");
  frame[1] = bins;
  frame[2] = min;
  frame[3] = max;
  return adopt(call(172));
}

/**
 * Where values would be inserted into a sorted sequence.
 *
 * `aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor`
 * `aten::searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor`
 */
export function searchsorted(sortedSequence: Tensor, self: Tensor | number, outInt32 = false, right = false, side?: string, sorter?: Tensor): Tensor {
  if (typeof self === "number") {
    frame[0] = handleOf(sortedSequence, "searchsorted", "sortedSequence");
    frame[1] = self;
    frame[2] = outInt32 ? 1 : 0;
    frame[3] = right ? 1 : 0;
    frame[4] = side === undefined ? 0 : 1;
    frame[5] = side === undefined ? 0 : intern(side);
    frame[6] = sorter === undefined ? 0 : 1;
    frame[7] = sorter === undefined ? 0 : handleOf(sorter, "searchsorted", "sorter");
    return adopt(call(174));
  }
  frame[0] = handleOf(sortedSequence, "searchsorted", "sortedSequence");
  frame[1] = handleOf(self, "searchsorted", "self");
  frame[2] = outInt32 ? 1 : 0;
  frame[3] = right ? 1 : 0;
  frame[4] = side === undefined ? 0 : 1;
  frame[5] = side === undefined ? 0 : intern(side);
  frame[6] = sorter === undefined ? 0 : 1;
  frame[7] = sorter === undefined ? 0 : handleOf(sorter, "searchsorted", "sorter");
  return adopt(call(173));
}

/**
 * Which bucket between boundaries each element falls into.
 *
 * `aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor`
 */
export function bucketize(self: Tensor, boundaries: Tensor, outInt32 = false, right = false): Tensor {
  frame[0] = handleOf(self, "bucketize", "self");
  frame[1] = handleOf(boundaries, "bucketize", "boundaries");
  frame[2] = outInt32 ? 1 : 0;
  frame[3] = right ? 1 : 0;
  return adopt(call(175));
}

/**
 * Matrix product of the last two dims, batched and broadcast over the others.
 *
 * `aten::matmul(Tensor self, Tensor other) -> Tensor`
 */
export function matmul(self: Tensor, other: Tensor): Tensor {
  frame[0] = handleOf(self, "matmul", "self");
  frame[1] = handleOf(other, "matmul", "other");
  return adopt(call(176));
}

/**
 * Matrix product of two 2-D tensors.
 *
 * `aten::mm(Tensor self, Tensor mat2) -> Tensor`
 */
export function mm(self: Tensor, mat2: Tensor): Tensor {
  frame[0] = handleOf(self, "mm", "self");
  frame[1] = handleOf(mat2, "mm", "mat2");
  return adopt(call(177));
}

/**
 * Batched matrix product of two 3-D tensors.
 *
 * `aten::bmm(Tensor self, Tensor mat2) -> Tensor`
 */
export function bmm(self: Tensor, mat2: Tensor): Tensor {
  frame[0] = handleOf(self, "bmm", "self");
  frame[1] = handleOf(mat2, "bmm", "mat2");
  return adopt(call(178));
}

/**
 * Matrix times vector.
 *
 * `aten::mv(Tensor self, Tensor vec) -> Tensor`
 */
export function mv(self: Tensor, vec: Tensor): Tensor {
  frame[0] = handleOf(self, "mv", "self");
  frame[1] = handleOf(vec, "mv", "vec");
  return adopt(call(179));
}

/**
 * Inner product of two vectors.
 *
 * `aten::dot(Tensor self, Tensor tensor) -> Tensor`
 */
export function dot(self: Tensor, tensor: Tensor): Tensor {
  frame[0] = handleOf(self, "dot", "self");
  frame[1] = handleOf(tensor, "dot", "tensor");
  return adopt(call(180));
}

/**
 * Outer product of two vectors.
 *
 * `aten::outer(Tensor self, Tensor vec2) -> Tensor`
 */
export function outer(self: Tensor, vec2: Tensor): Tensor {
  frame[0] = handleOf(self, "outer", "self");
  frame[1] = handleOf(vec2, "outer", "vec2");
  return adopt(call(181));
}

/**
 * beta · self + alpha · mat1 @ mat2.
 *
 * `aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor`
 */
export function addmm(self: Tensor, mat1: Tensor, mat2: Tensor, beta = 1, alpha = 1): Tensor {
  frame[0] = handleOf(self, "addmm", "self");
  frame[1] = handleOf(mat1, "addmm", "mat1");
  frame[2] = handleOf(mat2, "addmm", "mat2");
  frame[3] = beta;
  frame[4] = alpha;
  return adopt(call(182));
}

/**
 * beta · self + alpha · mat1 @ mat2, in place.
 *
 * `aten::addmm_(Tensor(a!) self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)`
 */
export function addmm_(self: Tensor, mat1: Tensor, mat2: Tensor, beta = 1, alpha = 1): Tensor {
  frame[0] = handleOf(self, "addmm_", "self");
  frame[1] = handleOf(mat1, "addmm_", "mat1");
  frame[2] = handleOf(mat2, "addmm_", "mat2");
  frame[3] = beta;
  frame[4] = alpha;
  call(183);
  return self;
}

/**
 * beta · self + alpha · mat @ vec.
 *
 * `aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor`
 */
export function addmv(self: Tensor, mat: Tensor, vec: Tensor, beta = 1, alpha = 1): Tensor {
  frame[0] = handleOf(self, "addmv", "self");
  frame[1] = handleOf(mat, "addmv", "mat");
  frame[2] = handleOf(vec, "addmv", "vec");
  frame[3] = beta;
  frame[4] = alpha;
  return adopt(call(184));
}

/**
 * beta · self + alpha · batch1 @ batch2, batched.
 *
 * `aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor`
 */
export function baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, beta = 1, alpha = 1): Tensor {
  frame[0] = handleOf(self, "baddbmm", "self");
  frame[1] = handleOf(batch1, "baddbmm", "batch1");
  frame[2] = handleOf(batch2, "baddbmm", "batch2");
  frame[3] = beta;
  frame[4] = alpha;
  return adopt(call(185));
}

/**
 * beta · self + alpha · batch1 @ batch2, batched, in place.
 *
 * `aten::baddbmm_(Tensor(a!) self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)`
 */
export function baddbmm_(self: Tensor, batch1: Tensor, batch2: Tensor, beta = 1, alpha = 1): Tensor {
  frame[0] = handleOf(self, "baddbmm_", "self");
  frame[1] = handleOf(batch1, "baddbmm_", "batch1");
  frame[2] = handleOf(batch2, "baddbmm_", "batch2");
  frame[3] = beta;
  frame[4] = alpha;
  call(186);
  return self;
}

/**
 * input @ weightᵀ + bias.
 *
 * `aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor`
 */
export function linear(input: Tensor, weight: Tensor, bias?: Tensor): Tensor {
  frame[0] = handleOf(input, "linear", "input");
  frame[1] = handleOf(weight, "linear", "weight");
  frame[2] = bias === undefined ? 0 : 1;
  frame[3] = bias === undefined ? 0 : handleOf(bias, "linear", "bias");
  return adopt(call(187));
}

/**
 * input1ᵀ W input2 + bias.
 *
 * `aten::bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor`
 */
export function bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias?: Tensor): Tensor {
  frame[0] = handleOf(input1, "bilinear", "input1");
  frame[1] = handleOf(input2, "bilinear", "input2");
  frame[2] = handleOf(weight, "bilinear", "weight");
  frame[3] = bias === undefined ? 0 : 1;
  frame[4] = bias === undefined ? 0 : handleOf(bias, "bilinear", "bias");
  return adopt(call(188));
}

/**
 * Sum of products by an equation such as "bij,bjk->bik".
 *
 * `aten::einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor`
 */
export function einsum(equation: string, tensors: readonly Tensor[], path?: readonly number[]): Tensor {
  frame[0] = intern(equation);
  const next = putTensors(1, tensors, "einsum", "tensors");
  putOptionalNumbers(next, path, "einsum", "path");
  return adopt(call(189));
}

/**
 * Contraction over the named dims of both.
 *
 * `aten::tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor`
 */
export function tensordot(self: Tensor, other: Tensor, dimsSelf: readonly number[], dimsOther: readonly number[]): Tensor {
  frame[0] = handleOf(self, "tensordot", "self");
  frame[1] = handleOf(other, "tensordot", "other");
  const next = putNumbers(2, dimsSelf, "tensordot", "dimsSelf");
  putNumbers(next, dimsOther, "tensordot", "dimsOther");
  return adopt(call(190));
}

/**
 * Sum of the diagonal of a matrix.
 *
 * `aten::trace(Tensor self) -> Tensor`
 */
export function trace(self: Tensor): Tensor {
  frame[0] = handleOf(self, "trace", "self");
  return adopt(call(191));
}

/**
 * Diagonal of a matrix, or a matrix with this diagonal.
 *
 * `aten::diag(Tensor self, int diagonal=0) -> Tensor`
 */
export function diag(self: Tensor, diagonal = 0): Tensor {
  frame[0] = handleOf(self, "diag", "self");
  frame[1] = diagonal;
  return adopt(call(192));
}

/**
 * Matrices with these diagonals.
 *
 * `aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor`
 */
export function diagEmbed(self: Tensor, offset = 0, dim1 = -2, dim2 = -1): Tensor {
  frame[0] = handleOf(self, "diagEmbed", "self");
  frame[1] = offset;
  frame[2] = dim1;
  frame[3] = dim2;
  return adopt(call(193));
}

/**
 * Distances of order p between rows.
 *
 * `aten::cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor`
 */
export function cdist(x1: Tensor, x2: Tensor, p = 2, computeMode?: number): Tensor {
  frame[0] = handleOf(x1, "cdist", "x1");
  frame[1] = handleOf(x2, "cdist", "x2");
  frame[2] = p;
  frame[3] = computeMode === undefined ? 0 : 1;
  frame[4] = computeMode === undefined ? 0 : computeMode;
  return adopt(call(194));
}

/**
 * Cosine of the angle between x1 and x2 along dim.
 *
 * `aten::cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor`
 */
export function cosineSimilarity(x1: Tensor, x2: Tensor, dim = 1, eps = 1e-8): Tensor {
  frame[0] = handleOf(x1, "cosineSimilarity", "x1");
  frame[1] = handleOf(x2, "cosineSimilarity", "x2");
  frame[2] = dim;
  frame[3] = eps;
  return adopt(call(195));
}

/**
 * Lower Cholesky factor of symmetric positive matrices.
 *
 * `aten::linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor`
 */
export function linalgCholesky(self: Tensor, upper = false): Tensor {
  frame[0] = handleOf(self, "linalgCholesky", "self");
  frame[1] = upper ? 1 : 0;
  return adopt(call(196));
}

/**
 * QR decomposition.
 *
 * `aten::linalg_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)`
 */
export function linalgQr(A: Tensor, mode = "reduced"): [Q: Tensor, R: Tensor] {
  frame[0] = handleOf(A, "linalgQr", "A");
  frame[1] = intern(mode);
  call(197);
  return [adoptAt(0), adoptAt(1)];
}

/**
 * Singular value decomposition.
 *
 * `aten::linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)`
 */
export function linalgSvd(A: Tensor, fullMatrices = true, driver?: string): [U: Tensor, S: Tensor, Vh: Tensor] {
  frame[0] = handleOf(A, "linalgSvd", "A");
  frame[1] = fullMatrices ? 1 : 0;
  frame[2] = driver === undefined ? 0 : 1;
  frame[3] = driver === undefined ? 0 : intern(driver);
  call(198);
  return [adoptAt(0), adoptAt(1), adoptAt(2)];
}

/**
 * Eigenvalues and eigenvectors of symmetric matrices.
 *
 * `aten::linalg_eigh(Tensor self, str UPLO="L") -> (Tensor eigenvalues, Tensor eigenvectors)`
 */
export function linalgEigh(self: Tensor, UPLO = "L"): [eigenvalues: Tensor, eigenvectors: Tensor] {
  frame[0] = handleOf(self, "linalgEigh", "self");
  frame[1] = intern(UPLO);
  call(199);
  return [adoptAt(0), adoptAt(1)];
}

/**
 * Inverse of square matrices.
 *
 * `aten::linalg_inv(Tensor A) -> Tensor`
 */
export function linalgInv(A: Tensor): Tensor {
  frame[0] = handleOf(A, "linalgInv", "A");
  return adopt(call(200));
}

/**
 * Solution X of A X = B.
 *
 * `aten::linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor`
 */
export function linalgSolve(A: Tensor, B: Tensor, left = true): Tensor {
  frame[0] = handleOf(A, "linalgSolve", "A");
  frame[1] = handleOf(B, "linalgSolve", "B");
  frame[2] = left ? 1 : 0;
  return adopt(call(201));
}

/**
 * softmax(query keyᵀ · scale + mask) value; scale 1/√width unless given (Vaswani et al. 2017).
 *
 * `aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor`
 */
export function scaledDotProductAttention(query: Tensor, key: Tensor, value: Tensor, attnMask?: Tensor, dropoutP = 0, isCausal = false, scale?: number, enableGqa = false): Tensor {
  frame[0] = handleOf(query, "scaledDotProductAttention", "query");
  frame[1] = handleOf(key, "scaledDotProductAttention", "key");
  frame[2] = handleOf(value, "scaledDotProductAttention", "value");
  frame[3] = attnMask === undefined ? 0 : 1;
  frame[4] = attnMask === undefined ? 0 : handleOf(attnMask, "scaledDotProductAttention", "attnMask");
  frame[5] = dropoutP;
  frame[6] = isCausal ? 1 : 0;
  frame[7] = scale === undefined ? 0 : 1;
  frame[8] = scale === undefined ? 0 : scale;
  frame[9] = enableGqa ? 1 : 0;
  return adopt(call(202));
}

/**
 * (x − mean) / √(variance + eps) over normalizedShape, times weight plus bias (Ba et al. 2016).
 *
 * `aten::layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1.0000000000000001e-05) -> Tensor`
 */
export function layerNorm(input: Tensor, normalizedShape: readonly number[], weight?: Tensor, bias?: Tensor, eps = 0.00001): Tensor {
  frame[0] = handleOf(input, "layerNorm", "input");
  const next = putNumbers(1, normalizedShape, "layerNorm", "normalizedShape");
  frame[next] = weight === undefined ? 0 : 1;
  frame[next + 1] = weight === undefined ? 0 : handleOf(weight, "layerNorm", "weight");
  frame[next + 2] = bias === undefined ? 0 : 1;
  frame[next + 3] = bias === undefined ? 0 : handleOf(bias, "layerNorm", "bias");
  frame[next + 4] = eps;
  return adopt(call(203));
}

/**
 * x / √(mean(x²) + eps) over normalizedShape, times weight (Zhang & Sennrich 2019).
 *
 * `aten::rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor`
 */
export function rmsNorm(input: Tensor, normalizedShape: readonly number[], weight?: Tensor, eps?: number): Tensor {
  frame[0] = handleOf(input, "rmsNorm", "input");
  const next = putNumbers(1, normalizedShape, "rmsNorm", "normalizedShape");
  frame[next] = weight === undefined ? 0 : 1;
  frame[next + 1] = weight === undefined ? 0 : handleOf(weight, "rmsNorm", "weight");
  frame[next + 2] = eps === undefined ? 0 : 1;
  frame[next + 3] = eps === undefined ? 0 : eps;
  return adopt(call(204));
}

/**
 * Normalization over groups of channels (Wu & He 2018).
 *
 * `aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor`
 */
export function groupNorm(input: Tensor, numGroups: number, weight?: Tensor, bias?: Tensor, eps = 0.00001, cudnnEnabled = true): Tensor {
  frame[0] = handleOf(input, "groupNorm", "input");
  frame[1] = numGroups;
  frame[2] = weight === undefined ? 0 : 1;
  frame[3] = weight === undefined ? 0 : handleOf(weight, "groupNorm", "weight");
  frame[4] = bias === undefined ? 0 : 1;
  frame[5] = bias === undefined ? 0 : handleOf(bias, "groupNorm", "bias");
  frame[6] = eps;
  frame[7] = cudnnEnabled ? 1 : 0;
  return adopt(call(205));
}

/**
 * Normalization over the batch, with running statistics (Ioffe & Szegedy 2015).
 *
 * `aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor`
 */
export function batchNorm(input: Tensor, weight: Tensor | undefined, bias: Tensor | undefined, runningMean: Tensor | undefined, runningVar: Tensor | undefined, training: boolean, momentum: number, eps: number, cudnnEnabled: boolean): Tensor {
  frame[0] = handleOf(input, "batchNorm", "input");
  frame[1] = weight === undefined ? 0 : 1;
  frame[2] = weight === undefined ? 0 : handleOf(weight, "batchNorm", "weight");
  frame[3] = bias === undefined ? 0 : 1;
  frame[4] = bias === undefined ? 0 : handleOf(bias, "batchNorm", "bias");
  frame[5] = runningMean === undefined ? 0 : 1;
  frame[6] = runningMean === undefined ? 0 : handleOf(runningMean, "batchNorm", "runningMean");
  frame[7] = runningVar === undefined ? 0 : 1;
  frame[8] = runningVar === undefined ? 0 : handleOf(runningVar, "batchNorm", "runningVar");
  frame[9] = training ? 1 : 0;
  frame[10] = momentum;
  frame[11] = eps;
  frame[12] = cudnnEnabled ? 1 : 0;
  return adopt(call(206));
}

/**
 * Rows of weight at indices.
 *
 * `aten::embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor`
 */
export function embedding(weight: Tensor, indices: Tensor, paddingIdx = -1, scaleGradByFreq = false, sparse = false): Tensor {
  frame[0] = handleOf(weight, "embedding", "weight");
  frame[1] = handleOf(indices, "embedding", "indices");
  frame[2] = paddingIdx;
  frame[3] = scaleGradByFreq ? 1 : 0;
  frame[4] = sparse ? 1 : 0;
  return adopt(call(207));
}

/**
 * Gradient of embedding as a dense tensor.
 *
 * `aten::embedding_dense_backward(Tensor grad_output, Tensor indices, int num_weights, int padding_idx, bool scale_grad_by_freq) -> Tensor`
 */
export function embeddingDenseBackward(gradOutput: Tensor, indices: Tensor, numWeights: number, paddingIdx: number, scaleGradByFreq: boolean): Tensor {
  frame[0] = handleOf(gradOutput, "embeddingDenseBackward", "gradOutput");
  frame[1] = handleOf(indices, "embeddingDenseBackward", "indices");
  frame[2] = numWeights;
  frame[3] = paddingIdx;
  frame[4] = scaleGradByFreq ? 1 : 0;
  return adopt(call(208));
}

/**
 * A trailing dim of size numClasses with 1 at the index.
 *
 * `aten::one_hot(Tensor self, int num_classes=-1) -> Tensor`
 */
export function oneHot(self: Tensor, numClasses = -1): Tensor {
  frame[0] = handleOf(self, "oneHot", "self");
  frame[1] = numClasses;
  return adopt(call(209));
}

/**
 * Cross entropy of logits against class indices; reduction 0 none, 1 mean, 2 sum.
 *
 * `aten::cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100, float label_smoothing=0.) -> Tensor`
 */
export function crossEntropyLoss(self: Tensor, target: Tensor, weight?: Tensor, reduction = 1, ignoreIndex = -100, labelSmoothing = 0): Tensor {
  frame[0] = handleOf(self, "crossEntropyLoss", "self");
  frame[1] = handleOf(target, "crossEntropyLoss", "target");
  frame[2] = weight === undefined ? 0 : 1;
  frame[3] = weight === undefined ? 0 : handleOf(weight, "crossEntropyLoss", "weight");
  frame[4] = reduction;
  frame[5] = ignoreIndex;
  frame[6] = labelSmoothing;
  return adopt(call(210));
}

/**
 * Negative log-likelihood of log-probabilities [N, C] or [C]; reduction as above.
 *
 * `aten::nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor`
 */
export function nllLoss(self: Tensor, target: Tensor, weight?: Tensor, reduction = 1, ignoreIndex = -100): Tensor {
  frame[0] = handleOf(self, "nllLoss", "self");
  frame[1] = handleOf(target, "nllLoss", "target");
  frame[2] = weight === undefined ? 0 : 1;
  frame[3] = weight === undefined ? 0 : handleOf(weight, "nllLoss", "weight");
  frame[4] = reduction;
  frame[5] = ignoreIndex;
  return adopt(call(211));
}

/**
 * The same for any number of trailing dims.
 *
 * `aten::nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor`
 */
export function nllLossNd(self: Tensor, target: Tensor, weight?: Tensor, reduction = 1, ignoreIndex = -100): Tensor {
  frame[0] = handleOf(self, "nllLossNd", "self");
  frame[1] = handleOf(target, "nllLossNd", "target");
  frame[2] = weight === undefined ? 0 : 1;
  frame[3] = weight === undefined ? 0 : handleOf(weight, "nllLossNd", "weight");
  frame[4] = reduction;
  frame[5] = ignoreIndex;
  return adopt(call(212));
}

/**
 * (self − target)²; reduction 0 none, 1 mean, 2 sum.
 *
 * `aten::mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor`
 */
export function mseLoss(self: Tensor, target: Tensor, reduction = 1): Tensor {
  frame[0] = handleOf(self, "mseLoss", "self");
  frame[1] = handleOf(target, "mseLoss", "target");
  frame[2] = reduction;
  return adopt(call(213));
}

/**
 * |self − target|; reduction as above.
 *
 * `aten::l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor`
 */
export function l1Loss(self: Tensor, target: Tensor, reduction = 1): Tensor {
  frame[0] = handleOf(self, "l1Loss", "self");
  frame[1] = handleOf(target, "l1Loss", "target");
  frame[2] = reduction;
  return adopt(call(214));
}

/**
 * Squared below beta, absolute above; reduction as above.
 *
 * `aten::smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor`
 */
export function smoothL1Loss(self: Tensor, target: Tensor, reduction = 1, beta = 1): Tensor {
  frame[0] = handleOf(self, "smoothL1Loss", "self");
  frame[1] = handleOf(target, "smoothL1Loss", "target");
  frame[2] = reduction;
  frame[3] = beta;
  return adopt(call(215));
}

/**
 * Squared below delta, linear above; reduction as above.
 *
 * `aten::huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor`
 */
export function huberLoss(self: Tensor, target: Tensor, reduction = 1, delta = 1): Tensor {
  frame[0] = handleOf(self, "huberLoss", "self");
  frame[1] = handleOf(target, "huberLoss", "target");
  frame[2] = reduction;
  frame[3] = delta;
  return adopt(call(216));
}

/**
 * Cross entropy of probabilities against targets in [0, 1].
 *
 * `aten::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor`
 */
export function binaryCrossEntropy(self: Tensor, target: Tensor, weight?: Tensor, reduction = 1): Tensor {
  frame[0] = handleOf(self, "binaryCrossEntropy", "self");
  frame[1] = handleOf(target, "binaryCrossEntropy", "target");
  frame[2] = weight === undefined ? 0 : 1;
  frame[3] = weight === undefined ? 0 : handleOf(weight, "binaryCrossEntropy", "weight");
  frame[4] = reduction;
  return adopt(call(217));
}

/**
 * The same on logits, stable.
 *
 * `aten::binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=1) -> Tensor`
 */
export function binaryCrossEntropyWithLogits(self: Tensor, target: Tensor, weight?: Tensor, posWeight?: Tensor, reduction = 1): Tensor {
  frame[0] = handleOf(self, "binaryCrossEntropyWithLogits", "self");
  frame[1] = handleOf(target, "binaryCrossEntropyWithLogits", "target");
  frame[2] = weight === undefined ? 0 : 1;
  frame[3] = weight === undefined ? 0 : handleOf(weight, "binaryCrossEntropyWithLogits", "weight");
  frame[4] = posWeight === undefined ? 0 : 1;
  frame[5] = posWeight === undefined ? 0 : handleOf(posWeight, "binaryCrossEntropyWithLogits", "posWeight");
  frame[6] = reduction;
  return adopt(call(218));
}

/**
 * target · (ln target − self), self being log-probabilities.
 *
 * `aten::kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor`
 */
export function klDiv(self: Tensor, target: Tensor, reduction = 1, logTarget = false): Tensor {
  frame[0] = handleOf(self, "klDiv", "self");
  frame[1] = handleOf(target, "klDiv", "target");
  frame[2] = reduction;
  frame[3] = logTarget ? 1 : 0;
  return adopt(call(219));
}

/**
 * Connectionist temporal classification of log-probabilities [T, N, C]; reduction as above (Graves et al. 2006).
 *
 * `aten::ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor`
 */
export function ctcLoss(logProbs: Tensor, targets: Tensor, inputLengths: Tensor, targetLengths: Tensor, blank = 0, reduction = 1, zeroInfinity = false): Tensor {
  frame[0] = handleOf(logProbs, "ctcLoss", "logProbs");
  frame[1] = handleOf(targets, "ctcLoss", "targets");
  frame[2] = handleOf(inputLengths, "ctcLoss", "inputLengths");
  frame[3] = handleOf(targetLengths, "ctcLoss", "targetLengths");
  frame[4] = blank;
  frame[5] = reduction;
  frame[6] = zeroInfinity ? 1 : 0;
  return adopt(call(220));
}

/**
 * max(0, −target · (input1 − input2) + margin).
 *
 * `aten::margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor`
 */
export function marginRankingLoss(input1: Tensor, input2: Tensor, target: Tensor, margin = 0, reduction = 1): Tensor {
  frame[0] = handleOf(input1, "marginRankingLoss", "input1");
  frame[1] = handleOf(input2, "marginRankingLoss", "input2");
  frame[2] = handleOf(target, "marginRankingLoss", "target");
  frame[3] = margin;
  frame[4] = reduction;
  return adopt(call(221));
}

/**
 * 1 − cosine for target 1, max(0, cosine − margin) for −1.
 *
 * `aten::cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor`
 */
export function cosineEmbeddingLoss(input1: Tensor, input2: Tensor, target: Tensor, margin = 0, reduction = 1): Tensor {
  frame[0] = handleOf(input1, "cosineEmbeddingLoss", "input1");
  frame[1] = handleOf(input2, "cosineEmbeddingLoss", "input2");
  frame[2] = handleOf(target, "cosineEmbeddingLoss", "target");
  frame[3] = margin;
  frame[4] = reduction;
  return adopt(call(222));
}

/**
 * Convolution in any number of dims, transposed or not.
 *
 * `aten::convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups) -> Tensor`
 */
export function convolution(input: Tensor, weight: Tensor, bias: Tensor | undefined, stride: readonly number[], padding: readonly number[], dilation: readonly number[], transposed: boolean, outputPadding: readonly number[], groups: number): Tensor {
  frame[0] = handleOf(input, "convolution", "input");
  frame[1] = handleOf(weight, "convolution", "weight");
  frame[2] = bias === undefined ? 0 : 1;
  frame[3] = bias === undefined ? 0 : handleOf(bias, "convolution", "bias");
  let next = putNumbers(4, stride, "convolution", "stride");
  next = putNumbers(next, padding, "convolution", "padding");
  next = putNumbers(next, dilation, "convolution", "dilation");
  frame[next] = transposed ? 1 : 0;
  next = putNumbers(next + 1, outputPadding, "convolution", "outputPadding");
  frame[next] = groups;
  return adopt(call(223));
}

/**
 * Convolution over [N, C, L].
 *
 * `aten::conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=[1], int[1] padding=[0], int[1] dilation=[1], int groups=1) -> Tensor`
 */
export function conv1d(input: Tensor, weight: Tensor, bias?: Tensor, stride: number | readonly number[] = [1], padding: number | readonly number[] = [0], dilation: number | readonly number[] = [1], groups = 1): Tensor {
  frame[0] = handleOf(input, "conv1d", "input");
  frame[1] = handleOf(weight, "conv1d", "weight");
  frame[2] = bias === undefined ? 0 : 1;
  frame[3] = bias === undefined ? 0 : handleOf(bias, "conv1d", "bias");
  let next = putNumbers(4, stride, "conv1d", "stride");
  next = putNumbers(next, padding, "conv1d", "padding");
  next = putNumbers(next, dilation, "conv1d", "dilation");
  frame[next] = groups;
  return adopt(call(224));
}

/**
 * Convolution over [N, C, H, W].
 *
 * `aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=[1, 1], int[2] padding=[0, 0], int[2] dilation=[1, 1], int groups=1) -> Tensor`
 */
export function conv2d(input: Tensor, weight: Tensor, bias?: Tensor, stride: number | readonly number[] = [1, 1], padding: number | readonly number[] = [0, 0], dilation: number | readonly number[] = [1, 1], groups = 1): Tensor {
  frame[0] = handleOf(input, "conv2d", "input");
  frame[1] = handleOf(weight, "conv2d", "weight");
  frame[2] = bias === undefined ? 0 : 1;
  frame[3] = bias === undefined ? 0 : handleOf(bias, "conv2d", "bias");
  let next = putNumbers(4, stride, "conv2d", "stride");
  next = putNumbers(next, padding, "conv2d", "padding");
  next = putNumbers(next, dilation, "conv2d", "dilation");
  frame[next] = groups;
  return adopt(call(225));
}

/**
 * Convolution over [N, C, D, H, W].
 *
 * `aten::conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=[1, 1, 1], int[3] padding=[0, 0, 0], int[3] dilation=[1, 1, 1], int groups=1) -> Tensor`
 */
export function conv3d(input: Tensor, weight: Tensor, bias?: Tensor, stride: number | readonly number[] = [1, 1, 1], padding: number | readonly number[] = [0, 0, 0], dilation: number | readonly number[] = [1, 1, 1], groups = 1): Tensor {
  frame[0] = handleOf(input, "conv3d", "input");
  frame[1] = handleOf(weight, "conv3d", "weight");
  frame[2] = bias === undefined ? 0 : 1;
  frame[3] = bias === undefined ? 0 : handleOf(bias, "conv3d", "bias");
  let next = putNumbers(4, stride, "conv3d", "stride");
  next = putNumbers(next, padding, "conv3d", "padding");
  next = putNumbers(next, dilation, "conv3d", "dilation");
  frame[next] = groups;
  return adopt(call(226));
}

/**
 * Transposed convolution over [N, C, L].
 *
 * `aten::conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=[1], int[1] padding=[0], int[1] output_padding=[0], int groups=1, int[1] dilation=[1]) -> Tensor`
 */
export function convTranspose1d(input: Tensor, weight: Tensor, bias?: Tensor, stride: number | readonly number[] = [1], padding: number | readonly number[] = [0], outputPadding: number | readonly number[] = [0], groups = 1, dilation: number | readonly number[] = [1]): Tensor {
  frame[0] = handleOf(input, "convTranspose1d", "input");
  frame[1] = handleOf(weight, "convTranspose1d", "weight");
  frame[2] = bias === undefined ? 0 : 1;
  frame[3] = bias === undefined ? 0 : handleOf(bias, "convTranspose1d", "bias");
  let next = putNumbers(4, stride, "convTranspose1d", "stride");
  next = putNumbers(next, padding, "convTranspose1d", "padding");
  next = putNumbers(next, outputPadding, "convTranspose1d", "outputPadding");
  frame[next] = groups;
  putNumbers(next + 1, dilation, "convTranspose1d", "dilation");
  return adopt(call(227));
}

/**
 * Transposed convolution over [N, C, H, W].
 *
 * `aten::conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=[1, 1], int[2] padding=[0, 0], int[2] output_padding=[0, 0], int groups=1, int[2] dilation=[1, 1]) -> Tensor`
 */
export function convTranspose2d(input: Tensor, weight: Tensor, bias?: Tensor, stride: number | readonly number[] = [1, 1], padding: number | readonly number[] = [0, 0], outputPadding: number | readonly number[] = [0, 0], groups = 1, dilation: number | readonly number[] = [1, 1]): Tensor {
  frame[0] = handleOf(input, "convTranspose2d", "input");
  frame[1] = handleOf(weight, "convTranspose2d", "weight");
  frame[2] = bias === undefined ? 0 : 1;
  frame[3] = bias === undefined ? 0 : handleOf(bias, "convTranspose2d", "bias");
  let next = putNumbers(4, stride, "convTranspose2d", "stride");
  next = putNumbers(next, padding, "convTranspose2d", "padding");
  next = putNumbers(next, outputPadding, "convTranspose2d", "outputPadding");
  frame[next] = groups;
  putNumbers(next + 1, dilation, "convTranspose2d", "dilation");
  return adopt(call(228));
}

/**
 * Largest in each window of [N, C, L].
 *
 * `aten::max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> Tensor`
 */
export function maxPool1d(self: Tensor, kernelSize: number | readonly number[], stride: number | readonly number[] = [], padding: number | readonly number[] = [0], dilation: number | readonly number[] = [1], ceilMode = false): Tensor {
  frame[0] = handleOf(self, "maxPool1d", "self");
  let next = putNumbers(1, kernelSize, "maxPool1d", "kernelSize");
  next = putNumbers(next, stride, "maxPool1d", "stride");
  next = putNumbers(next, padding, "maxPool1d", "padding");
  next = putNumbers(next, dilation, "maxPool1d", "dilation");
  frame[next] = ceilMode ? 1 : 0;
  return adopt(call(229));
}

/**
 * Largest in each window of [N, C, H, W].
 *
 * `aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor`
 */
export function maxPool2d(self: Tensor, kernelSize: number | readonly number[], stride: number | readonly number[] = [], padding: number | readonly number[] = 0, dilation: number | readonly number[] = 1, ceilMode = false): Tensor {
  frame[0] = handleOf(self, "maxPool2d", "self");
  let next = putNumbers(1, kernelSize, "maxPool2d", "kernelSize");
  next = putNumbers(next, stride, "maxPool2d", "stride");
  next = putNumbers(next, padding, "maxPool2d", "padding");
  next = putNumbers(next, dilation, "maxPool2d", "dilation");
  frame[next] = ceilMode ? 1 : 0;
  return adopt(call(230));
}

/**
 * Mean of each window of [N, C, L].
 *
 * `aten::avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool ceil_mode=False, bool count_include_pad=True) -> Tensor`
 */
export function avgPool1d(self: Tensor, kernelSize: number | readonly number[], stride: number | readonly number[] = [], padding: number | readonly number[] = [0], ceilMode = false, countIncludePad = true): Tensor {
  frame[0] = handleOf(self, "avgPool1d", "self");
  let next = putNumbers(1, kernelSize, "avgPool1d", "kernelSize");
  next = putNumbers(next, stride, "avgPool1d", "stride");
  next = putNumbers(next, padding, "avgPool1d", "padding");
  frame[next] = ceilMode ? 1 : 0;
  frame[next + 1] = countIncludePad ? 1 : 0;
  return adopt(call(231));
}

/**
 * Mean of each window of [N, C, H, W].
 *
 * `aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor`
 */
export function avgPool2d(self: Tensor, kernelSize: number | readonly number[], stride: number | readonly number[] = [], padding: number | readonly number[] = 0, ceilMode = false, countIncludePad = true, divisorOverride?: number): Tensor {
  frame[0] = handleOf(self, "avgPool2d", "self");
  let next = putNumbers(1, kernelSize, "avgPool2d", "kernelSize");
  next = putNumbers(next, stride, "avgPool2d", "stride");
  next = putNumbers(next, padding, "avgPool2d", "padding");
  frame[next] = ceilMode ? 1 : 0;
  frame[next + 1] = countIncludePad ? 1 : 0;
  frame[next + 2] = divisorOverride === undefined ? 0 : 1;
  frame[next + 3] = divisorOverride === undefined ? 0 : divisorOverride;
  return adopt(call(232));
}

/**
 * Mean of as many windows as outputSize asks.
 *
 * `aten::adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor`
 */
export function adaptiveAvgPool1d(self: Tensor, outputSize: number | readonly number[]): Tensor {
  frame[0] = handleOf(self, "adaptiveAvgPool1d", "self");
  putNumbers(1, outputSize, "adaptiveAvgPool1d", "outputSize");
  return adopt(call(233));
}

/**
 * The same in two dims.
 *
 * `aten::adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor`
 */
export function adaptiveAvgPool2d(self: Tensor, outputSize: number | readonly number[]): Tensor {
  frame[0] = handleOf(self, "adaptiveAvgPool2d", "self");
  putNumbers(1, outputSize, "adaptiveAvgPool2d", "outputSize");
  return adopt(call(234));
}

/**
 * Pads the last dims; mode "constant", "reflect", "replicate" or "circular".
 *
 * `aten::pad(Tensor self, int[] pad, str mode="constant", float? value=None) -> Tensor`
 */
export function pad(self: Tensor, pad: readonly number[], mode = "constant", value?: number): Tensor {
  frame[0] = handleOf(self, "pad", "self");
  const next = putNumbers(1, pad, "pad", "pad");
  frame[next] = intern(mode);
  frame[next + 1] = value === undefined ? 0 : 1;
  frame[next + 2] = value === undefined ? 0 : value;
  return adopt(call(235));
}

/**
 * Pads the last dims with value.
 *
 * `aten::constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor`
 */
export function constantPadNd(self: Tensor, pad: readonly number[], value = 0): Tensor {
  frame[0] = handleOf(self, "constantPadNd", "self");
  const next = putNumbers(1, pad, "constantPadNd", "pad");
  frame[next] = value;
  return adopt(call(236));
}

/**
 * A view of windows of size along dimension, step apart.
 *
 * `aten::unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)`
 */
export function unfold(self: Tensor, dimension: number, size: number, step: number): Tensor {
  frame[0] = handleOf(self, "unfold", "self");
  frame[1] = dimension;
  frame[2] = size;
  frame[3] = step;
  return adopt(call(237));
}

/**
 * The entries of dim at index.
 *
 * `aten::index_select(Tensor self, int dim, Tensor index) -> Tensor`
 */
export function indexSelect(self: Tensor, dim: number, index: Tensor): Tensor {
  frame[0] = handleOf(self, "indexSelect", "self");
  frame[1] = dim;
  frame[2] = handleOf(index, "indexSelect", "index");
  return adopt(call(238));
}

/**
 * Elements at index along dim.
 *
 * `aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor`
 */
export function gather(self: Tensor, dim: number, index: Tensor, sparseGrad = false): Tensor {
  frame[0] = handleOf(self, "gather", "self");
  frame[1] = dim;
  frame[2] = handleOf(index, "gather", "index");
  frame[3] = sparseGrad ? 1 : 0;
  return adopt(call(239));
}

/**
 * Writes src, or a value, at index along dim.
 *
 * `aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor`
 * `aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor`
 */
export function scatter(self: Tensor, dim: number, index: Tensor, src: Tensor | number): Tensor {
  if (typeof src === "number") {
    frame[0] = handleOf(self, "scatter", "self");
    frame[1] = dim;
    frame[2] = handleOf(index, "scatter", "index");
    frame[3] = src;
    return adopt(call(241));
  }
  frame[0] = handleOf(self, "scatter", "self");
  frame[1] = dim;
  frame[2] = handleOf(index, "scatter", "index");
  frame[3] = handleOf(src, "scatter", "src");
  return adopt(call(240));
}

/**
 * Writes src, or a value, at index along dim, in place.
 *
 * `aten::scatter_.src(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)`
 * `aten::scatter_.value(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)`
 */
export function scatter_(self: Tensor, dim: number, index: Tensor, src: Tensor | number): Tensor {
  if (typeof src === "number") {
    frame[0] = handleOf(self, "scatter_", "self");
    frame[1] = dim;
    frame[2] = handleOf(index, "scatter_", "index");
    frame[3] = src;
    call(243);
    return self;
  }
  frame[0] = handleOf(self, "scatter_", "self");
  frame[1] = dim;
  frame[2] = handleOf(index, "scatter_", "index");
  frame[3] = handleOf(src, "scatter_", "src");
  call(242);
  return self;
}

/**
 * Adds src at index along dim.
 *
 * `aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor`
 */
export function scatterAdd(self: Tensor, dim: number, index: Tensor, src: Tensor): Tensor {
  frame[0] = handleOf(self, "scatterAdd", "self");
  frame[1] = dim;
  frame[2] = handleOf(index, "scatterAdd", "index");
  frame[3] = handleOf(src, "scatterAdd", "src");
  return adopt(call(244));
}

/**
 * Adds src at index along dim, in place.
 *
 * `aten::scatter_add_(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)`
 */
export function scatterAdd_(self: Tensor, dim: number, index: Tensor, src: Tensor): Tensor {
  frame[0] = handleOf(self, "scatterAdd_", "self");
  frame[1] = dim;
  frame[2] = handleOf(index, "scatterAdd_", "index");
  frame[3] = handleOf(src, "scatterAdd_", "src");
  call(245);
  return self;
}

/**
 * Reduces src into self at index: "sum", "prod", "mean", "amax", "amin".
 *
 * `aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor`
 */
export function scatterReduce(self: Tensor, dim: number, index: Tensor, src: Tensor, reduce: string, includeSelf = true): Tensor {
  frame[0] = handleOf(self, "scatterReduce", "self");
  frame[1] = dim;
  frame[2] = handleOf(index, "scatterReduce", "index");
  frame[3] = handleOf(src, "scatterReduce", "src");
  frame[4] = intern(reduce);
  frame[5] = includeSelf ? 1 : 0;
  return adopt(call(246));
}

/**
 * Reduces src into self at index: "sum", "prod", "mean", "amax", "amin", in place.
 *
 * `aten::scatter_reduce_.two(Tensor(a!) self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor(a!)`
 */
export function scatterReduce_(self: Tensor, dim: number, index: Tensor, src: Tensor, reduce: string, includeSelf = true): Tensor {
  frame[0] = handleOf(self, "scatterReduce_", "self");
  frame[1] = dim;
  frame[2] = handleOf(index, "scatterReduce_", "index");
  frame[3] = handleOf(src, "scatterReduce_", "src");
  frame[4] = intern(reduce);
  frame[5] = includeSelf ? 1 : 0;
  call(247);
  return self;
}

/**
 * self[indices]; an undefined index takes its whole dim.
 *
 * `aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor`
 */
export function index(self: Tensor, indices: readonly (Tensor | undefined)[]): Tensor {
  frame[0] = handleOf(self, "index", "self");
  putOptionalTensors(1, indices, "index", "indices");
  return adopt(call(248));
}

/**
 * self with self[indices] set to, or increased by, values.
 *
 * `aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor`
 */
export function indexPut(self: Tensor, indices: readonly (Tensor | undefined)[], values: Tensor, accumulate = false): Tensor {
  frame[0] = handleOf(self, "indexPut", "self");
  const next = putOptionalTensors(1, indices, "indexPut", "indices");
  frame[next] = handleOf(values, "indexPut", "values");
  frame[next + 1] = accumulate ? 1 : 0;
  return adopt(call(249));
}

/**
 * self with self[indices] set to, or increased by, values, in place.
 *
 * `aten::index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)`
 */
export function indexPut_(self: Tensor, indices: readonly (Tensor | undefined)[], values: Tensor, accumulate = false): Tensor {
  frame[0] = handleOf(self, "indexPut_", "self");
  const next = putOptionalTensors(1, indices, "indexPut_", "indices");
  frame[next] = handleOf(values, "indexPut_", "values");
  frame[next + 1] = accumulate ? 1 : 0;
  call(250);
  return self;
}

/**
 * self with alpha · source added at index of dim.
 *
 * `aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor`
 */
export function indexAdd(self: Tensor, dim: number, index: Tensor, source: Tensor, alpha = 1): Tensor {
  frame[0] = handleOf(self, "indexAdd", "self");
  frame[1] = dim;
  frame[2] = handleOf(index, "indexAdd", "index");
  frame[3] = handleOf(source, "indexAdd", "source");
  frame[4] = alpha;
  return adopt(call(251));
}

/**
 * self with alpha · source added at index of dim, in place.
 *
 * `aten::index_add_(Tensor(a!) self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor(a!)`
 */
export function indexAdd_(self: Tensor, dim: number, index: Tensor, source: Tensor, alpha = 1): Tensor {
  frame[0] = handleOf(self, "indexAdd_", "self");
  frame[1] = dim;
  frame[2] = handleOf(index, "indexAdd_", "index");
  frame[3] = handleOf(source, "indexAdd_", "source");
  frame[4] = alpha;
  call(252);
  return self;
}

/**
 * self with source written at index of dim.
 *
 * `aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor`
 */
export function indexCopy(self: Tensor, dim: number, index: Tensor, source: Tensor): Tensor {
  frame[0] = handleOf(self, "indexCopy", "self");
  frame[1] = dim;
  frame[2] = handleOf(index, "indexCopy", "index");
  frame[3] = handleOf(source, "indexCopy", "source");
  return adopt(call(253));
}

/**
 * self with source written at index of dim, in place.
 *
 * `aten::index_copy_(Tensor(a!) self, int dim, Tensor index, Tensor source) -> Tensor(a!)`
 */
export function indexCopy_(self: Tensor, dim: number, index: Tensor, source: Tensor): Tensor {
  frame[0] = handleOf(self, "indexCopy_", "self");
  frame[1] = dim;
  frame[2] = handleOf(index, "indexCopy_", "index");
  frame[3] = handleOf(source, "indexCopy_", "source");
  call(254);
  return self;
}

/**
 * self with value written at index of dim.
 *
 * `aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor`
 */
export function indexFill(self: Tensor, dim: number, index: Tensor, value: number): Tensor {
  frame[0] = handleOf(self, "indexFill", "self");
  frame[1] = dim;
  frame[2] = handleOf(index, "indexFill", "index");
  frame[3] = value;
  return adopt(call(255));
}

/**
 * self with value written at index of dim, in place.
 *
 * `aten::index_fill_.int_Scalar(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)`
 */
export function indexFill_(self: Tensor, dim: number, index: Tensor, value: number): Tensor {
  frame[0] = handleOf(self, "indexFill_", "self");
  frame[1] = dim;
  frame[2] = handleOf(index, "indexFill_", "index");
  frame[3] = value;
  call(256);
  return self;
}

/**
 * self with value where mask is true.
 *
 * `aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor`
 * `aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor`
 */
export function maskedFill(self: Tensor, mask: Tensor, value: number | Tensor): Tensor {
  if (typeof value === "number") {
    frame[0] = handleOf(self, "maskedFill", "self");
    frame[1] = handleOf(mask, "maskedFill", "mask");
    frame[2] = value;
    return adopt(call(257));
  }
  frame[0] = handleOf(self, "maskedFill", "self");
  frame[1] = handleOf(mask, "maskedFill", "mask");
  frame[2] = handleOf(value, "maskedFill", "value");
  return adopt(call(258));
}

/**
 * self with value where mask is true, in place.
 *
 * `aten::masked_fill_.Scalar(Tensor(a!) self, Tensor mask, Scalar value) -> Tensor(a!)`
 * `aten::masked_fill_.Tensor(Tensor(a!) self, Tensor mask, Tensor value) -> Tensor(a!)`
 */
export function maskedFill_(self: Tensor, mask: Tensor, value: number | Tensor): Tensor {
  if (typeof value === "number") {
    frame[0] = handleOf(self, "maskedFill_", "self");
    frame[1] = handleOf(mask, "maskedFill_", "mask");
    frame[2] = value;
    call(259);
    return self;
  }
  frame[0] = handleOf(self, "maskedFill_", "self");
  frame[1] = handleOf(mask, "maskedFill_", "mask");
  frame[2] = handleOf(value, "maskedFill_", "value");
  call(260);
  return self;
}

/**
 * The elements where mask is true, 1-D.
 *
 * `aten::masked_select(Tensor self, Tensor mask) -> Tensor`
 */
export function maskedSelect(self: Tensor, mask: Tensor): Tensor {
  frame[0] = handleOf(self, "maskedSelect", "self");
  frame[1] = handleOf(mask, "maskedSelect", "mask");
  return adopt(call(261));
}

/**
 * self with elements of source, in order, where mask is true.
 *
 * `aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor`
 */
export function maskedScatter(self: Tensor, mask: Tensor, source: Tensor): Tensor {
  frame[0] = handleOf(self, "maskedScatter", "self");
  frame[1] = handleOf(mask, "maskedScatter", "mask");
  frame[2] = handleOf(source, "maskedScatter", "source");
  return adopt(call(262));
}

/**
 * self with elements of source, in order, where mask is true, in place.
 *
 * `aten::masked_scatter_(Tensor(a!) self, Tensor mask, Tensor source) -> Tensor(a!)`
 */
export function maskedScatter_(self: Tensor, mask: Tensor, source: Tensor): Tensor {
  frame[0] = handleOf(self, "maskedScatter_", "self");
  frame[1] = handleOf(mask, "maskedScatter_", "mask");
  frame[2] = handleOf(source, "maskedScatter_", "source");
  call(263);
  return self;
}

/**
 * self where condition is true, else other.
 *
 * `aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor`
 * `aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor`
 */
export function where(condition: Tensor, self: Tensor, other: Tensor | number): Tensor {
  if (typeof other === "number") {
    frame[0] = handleOf(condition, "where", "condition");
    frame[1] = handleOf(self, "where", "self");
    frame[2] = other;
    return adopt(call(265));
  }
  frame[0] = handleOf(condition, "where", "condition");
  frame[1] = handleOf(self, "where", "self");
  frame[2] = handleOf(other, "where", "other");
  return adopt(call(264));
}

/**
 * Positions of elements that are not zero [n, ndim].
 *
 * `aten::nonzero(Tensor self) -> Tensor`
 */
export function nonzero(self: Tensor): Tensor {
  frame[0] = handleOf(self, "nonzero", "self");
  return adopt(call(266));
}

/**
 * Elements of the flattened tensor at index.
 *
 * `aten::take(Tensor self, Tensor index) -> Tensor`
 */
export function take(self: Tensor, index: Tensor): Tensor {
  frame[0] = handleOf(self, "take", "self");
  frame[1] = handleOf(index, "take", "index");
  return adopt(call(267));
}

/**
 * Elements at indices along dim, broadcasting.
 *
 * `aten::take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor`
 */
export function takeAlongDim(self: Tensor, indices: Tensor, dim?: number): Tensor {
  frame[0] = handleOf(self, "takeAlongDim", "self");
  frame[1] = handleOf(indices, "takeAlongDim", "indices");
  frame[2] = dim === undefined ? 0 : 1;
  frame[3] = dim === undefined ? 0 : dim;
  return adopt(call(268));
}

/**
 * A view of length entries of dim from start on.
 *
 * `aten::narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)`
 */
export function narrow(self: Tensor, dim: number, start: number, length: number): Tensor {
  frame[0] = handleOf(self, "narrow", "self");
  frame[1] = dim;
  frame[2] = start;
  frame[3] = length;
  return adopt(call(269));
}

/**
 * A view of one entry of dim, without that dim.
 *
 * `aten::select.int(Tensor(a) self, int dim, int index) -> Tensor(a)`
 */
export function select(self: Tensor, dim: number, index: number): Tensor {
  frame[0] = handleOf(self, "select", "self");
  frame[1] = dim;
  frame[2] = index;
  return adopt(call(270));
}

/**
 * A view of dim from start to end by step.
 *
 * `aten::slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a)`
 */
export function slice(self: Tensor, dim = 0, start?: number, end?: number, step = 1): Tensor {
  frame[0] = handleOf(self, "slice", "self");
  frame[1] = dim;
  frame[2] = start === undefined ? 0 : 1;
  frame[3] = start === undefined ? 0 : start;
  frame[4] = end === undefined ? 0 : 1;
  frame[5] = end === undefined ? 0 : end;
  frame[6] = step;
  return adopt(call(271));
}

/**
 * self with src written to the slice.
 *
 * `aten::slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor`
 */
export function sliceScatter(self: Tensor, src: Tensor, dim = 0, start?: number, end?: number, step = 1): Tensor {
  frame[0] = handleOf(self, "sliceScatter", "self");
  frame[1] = handleOf(src, "sliceScatter", "src");
  frame[2] = dim;
  frame[3] = start === undefined ? 0 : 1;
  frame[4] = start === undefined ? 0 : start;
  frame[5] = end === undefined ? 0 : 1;
  frame[6] = end === undefined ? 0 : end;
  frame[7] = step;
  return adopt(call(272));
}

/**
 * self with src written to one entry of dim.
 *
 * `aten::select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor`
 */
export function selectScatter(self: Tensor, src: Tensor, dim: number, index: number): Tensor {
  frame[0] = handleOf(self, "selectScatter", "self");
  frame[1] = handleOf(src, "selectScatter", "src");
  frame[2] = dim;
  frame[3] = index;
  return adopt(call(273));
}

/**
 * A view of the diagonals.
 *
 * `aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)`
 */
export function diagonal(self: Tensor, offset = 0, dim1 = 0, dim2 = 1): Tensor {
  frame[0] = handleOf(self, "diagonal", "self");
  frame[1] = offset;
  frame[2] = dim1;
  frame[3] = dim2;
  return adopt(call(274));
}

/**
 * Lower triangle, the rest 0.
 *
 * `aten::tril(Tensor self, int diagonal=0) -> Tensor`
 */
export function tril(self: Tensor, diagonal = 0): Tensor {
  frame[0] = handleOf(self, "tril", "self");
  frame[1] = diagonal;
  return adopt(call(275));
}

/**
 * Lower triangle, the rest 0, in place.
 *
 * `aten::tril_(Tensor(a!) self, int diagonal=0) -> Tensor(a!)`
 */
export function tril_(self: Tensor, diagonal = 0): Tensor {
  frame[0] = handleOf(self, "tril_", "self");
  frame[1] = diagonal;
  call(276);
  return self;
}

/**
 * Upper triangle, the rest 0.
 *
 * `aten::triu(Tensor self, int diagonal=0) -> Tensor`
 */
export function triu(self: Tensor, diagonal = 0): Tensor {
  frame[0] = handleOf(self, "triu", "self");
  frame[1] = diagonal;
  return adopt(call(277));
}

/**
 * Upper triangle, the rest 0, in place.
 *
 * `aten::triu_(Tensor(a!) self, int diagonal=0) -> Tensor(a!)`
 */
export function triu_(self: Tensor, diagonal = 0): Tensor {
  frame[0] = handleOf(self, "triu_", "self");
  frame[1] = diagonal;
  call(278);
  return self;
}

/**
 * Reversed along dims.
 *
 * `aten::flip(Tensor self, int[] dims) -> Tensor`
 */
export function flip(self: Tensor, dims: readonly number[]): Tensor {
  frame[0] = handleOf(self, "flip", "self");
  putNumbers(1, dims, "flip", "dims");
  return adopt(call(279));
}

/**
 * Rotated along dims by shifts.
 *
 * `aten::roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor`
 */
export function roll(self: Tensor, shifts: number | readonly number[], dims: number | readonly number[] = []): Tensor {
  frame[0] = handleOf(self, "roll", "self");
  const next = putNumbers(1, shifts, "roll", "shifts");
  putNumbers(next, dims, "roll", "dims");
  return adopt(call(280));
}

/**
 * The tensor repeated, repeats times along each dim.
 *
 * `aten::repeat(Tensor self, int[] repeats) -> Tensor`
 */
export function repeat(self: Tensor, repeats: readonly number[]): Tensor {
  frame[0] = handleOf(self, "repeat", "self");
  putNumbers(1, repeats, "repeat", "repeats");
  return adopt(call(281));
}

/**
 * Each entry of dim repeated.
 *
 * `aten::repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> Tensor`
 * `aten::repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) -> Tensor`
 */
export function repeatInterleave(self: Tensor, repeats: number | Tensor, dim?: number, outputSize?: number): Tensor {
  if (typeof repeats === "number") {
    frame[0] = handleOf(self, "repeatInterleave", "self");
    frame[1] = repeats;
    frame[2] = dim === undefined ? 0 : 1;
    frame[3] = dim === undefined ? 0 : dim;
    frame[4] = outputSize === undefined ? 0 : 1;
    frame[5] = outputSize === undefined ? 0 : outputSize;
    return adopt(call(282));
  }
  frame[0] = handleOf(self, "repeatInterleave", "self");
  frame[1] = handleOf(repeats, "repeatInterleave", "repeats");
  frame[2] = dim === undefined ? 0 : 1;
  frame[3] = dim === undefined ? 0 : dim;
  frame[4] = outputSize === undefined ? 0 : 1;
  frame[5] = outputSize === undefined ? 0 : outputSize;
  return adopt(call(283));
}

/**
 * repeat that pads dims on the left.
 *
 * `aten::tile(Tensor self, int[] dims) -> Tensor`
 */
export function tile(self: Tensor, dims: readonly number[]): Tensor {
  frame[0] = handleOf(self, "tile", "self");
  putNumbers(1, dims, "tile", "dims");
  return adopt(call(284));
}

/**
 * The same memory as another shape; one size may be −1.
 *
 * `aten::view(Tensor(a) self, int[] size) -> Tensor(a)`
 */
export function view(self: Tensor, size: readonly number[]): Tensor {
  frame[0] = handleOf(self, "view", "self");
  putNumbers(1, size, "view", "size");
  return adopt(call(285));
}

/**
 * The same bytes as another dtype.
 *
 * `aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)`
 */
export function viewDtype(self: Tensor, dtype: DType): Tensor {
  frame[0] = handleOf(self, "viewDtype", "self");
  frame[1] = dtypeCode(dtype);
  return adopt(call(286));
}

/**
 * view to the shape of other.
 *
 * `aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a)`
 */
export function viewAs(self: Tensor, other: Tensor): Tensor {
  frame[0] = handleOf(self, "viewAs", "self");
  frame[1] = handleOf(other, "viewAs", "other");
  return adopt(call(287));
}

/**
 * view where possible, else a copy.
 *
 * `aten::reshape(Tensor(a) self, int[] shape) -> Tensor(a)`
 */
export function reshape(self: Tensor, shape: readonly number[]): Tensor {
  frame[0] = handleOf(self, "reshape", "self");
  putNumbers(1, shape, "reshape", "shape");
  return adopt(call(288));
}

/**
 * reshape to the shape of other.
 *
 * `aten::reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)`
 */
export function reshapeAs(self: Tensor, other: Tensor): Tensor {
  frame[0] = handleOf(self, "reshapeAs", "self");
  frame[1] = handleOf(other, "reshapeAs", "other");
  return adopt(call(289));
}

/**
 * startDim to endDim as one dim.
 *
 * `aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)`
 */
export function flatten(self: Tensor, startDim = 0, endDim = -1): Tensor {
  frame[0] = handleOf(self, "flatten", "self");
  frame[1] = startDim;
  frame[2] = endDim;
  return adopt(call(290));
}

/**
 * dim as several sizes.
 *
 * `aten::unflatten.int(Tensor(a) self, int dim, int[] sizes) -> Tensor(a)`
 */
export function unflatten(self: Tensor, dim: number, sizes: readonly number[]): Tensor {
  frame[0] = handleOf(self, "unflatten", "self");
  frame[1] = dim;
  putNumbers(2, sizes, "unflatten", "sizes");
  return adopt(call(291));
}

/**
 * Without dim when its size is 1.
 *
 * `aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)`
 */
export function squeeze(self: Tensor, dim: number): Tensor {
  frame[0] = handleOf(self, "squeeze", "self");
  frame[1] = dim;
  return adopt(call(292));
}

/**
 * Without all dims of size 1.
 *
 * `aten::squeeze(Tensor(a) self) -> Tensor(a)`
 */
export function squeezeAll(self: Tensor): Tensor {
  frame[0] = handleOf(self, "squeezeAll", "self");
  return adopt(call(293));
}

/**
 * With a new dim of size 1.
 *
 * `aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)`
 */
export function unsqueeze(self: Tensor, dim: number): Tensor {
  frame[0] = handleOf(self, "unsqueeze", "self");
  frame[1] = dim;
  return adopt(call(294));
}

/**
 * dim0 and dim1 swapped, a view.
 *
 * `aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)`
 */
export function transpose(self: Tensor, dim0: number, dim1: number): Tensor {
  frame[0] = handleOf(self, "transpose", "self");
  frame[1] = dim0;
  frame[2] = dim1;
  return adopt(call(295));
}

/**
 * Transpose of a matrix, a view.
 *
 * `aten::t(Tensor(a) self) -> Tensor(a)`
 */
export function t(self: Tensor): Tensor {
  frame[0] = handleOf(self, "t", "self");
  return adopt(call(296));
}

/**
 * Last two dims swapped, a view.
 *
 * `aten::mT(Tensor(a) self) -> Tensor(a)`
 */
export function mT(self: Tensor): Tensor {
  frame[0] = handleOf(self, "mT", "self");
  return adopt(call(297));
}

/**
 * Dims in another order, a view.
 *
 * `aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)`
 */
export function permute(self: Tensor, dims: readonly number[]): Tensor {
  frame[0] = handleOf(self, "permute", "self");
  putNumbers(1, dims, "permute", "dims");
  return adopt(call(298));
}

/**
 * source dim moved to destination, a view.
 *
 * `aten::movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)`
 */
export function movedim(self: Tensor, source: number, destination: number): Tensor {
  frame[0] = handleOf(self, "movedim", "self");
  frame[1] = source;
  frame[2] = destination;
  return adopt(call(299));
}

/**
 * Dims of size 1 repeated without copying.
 *
 * `aten::expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a)`
 */
export function expand(self: Tensor, size: readonly number[], implicit = false): Tensor {
  frame[0] = handleOf(self, "expand", "self");
  const next = putNumbers(1, size, "expand", "size");
  frame[next] = implicit ? 1 : 0;
  return adopt(call(300));
}

/**
 * expand to the shape of other.
 *
 * `aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a)`
 */
export function expandAs(self: Tensor, other: Tensor): Tensor {
  frame[0] = handleOf(self, "expandAs", "self");
  frame[1] = handleOf(other, "expandAs", "other");
  return adopt(call(301));
}

/**
 * expand that may add dims on the left.
 *
 * `aten::broadcast_to(Tensor(a) self, int[] size) -> Tensor(a)`
 */
export function broadcastTo(self: Tensor, size: readonly number[]): Tensor {
  frame[0] = handleOf(self, "broadcastTo", "self");
  putNumbers(1, size, "broadcastTo", "size");
  return adopt(call(302));
}

/**
 * All of them expanded to one shape.
 *
 * `aten::broadcast_tensors(Tensor[] tensors) -> Tensor[]`
 */
export function broadcastTensors(tensors: readonly Tensor[]): Tensor[] {
  putTensors(0, tensors, "broadcastTensors", "tensors");
  return adoptList(call(303));
}

/**
 * Itself when its elements lie in order, else a copy that does.
 *
 * `aten::contiguous(Tensor(a) self) -> Tensor(a)`
 */
export function contiguous(self: Tensor): Tensor {
  frame[0] = handleOf(self, "contiguous", "self");
  return adopt(call(304));
}

/**
 * A view with given sizes and strides; nothing is checked but the bounds.
 *
 * `aten::as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a)`
 */
export function asStrided(self: Tensor, size: readonly number[], stride: readonly number[], storageOffset?: number): Tensor {
  frame[0] = handleOf(self, "asStrided", "self");
  let next = putNumbers(1, size, "asStrided", "size");
  next = putNumbers(next, stride, "asStrided", "stride");
  frame[next] = storageOffset === undefined ? 0 : 1;
  frame[next + 1] = storageOffset === undefined ? 0 : storageOffset;
  return adopt(call(305));
}

/**
 * The same tensor as a new view.
 *
 * `aten::alias(Tensor(a) self) -> Tensor(a)`
 */
export function alias(self: Tensor): Tensor {
  frame[0] = handleOf(self, "alias", "self");
  return adopt(call(306));
}

/**
 * Tensors joined along dim.
 *
 * `aten::cat(Tensor[] tensors, int dim=0) -> Tensor`
 */
export function cat(tensors: readonly Tensor[], dim = 0): Tensor {
  const next = putTensors(0, tensors, "cat", "tensors");
  frame[next] = dim;
  return adopt(call(307));
}

/**
 * Tensors of one shape joined along a new dim.
 *
 * `aten::stack(Tensor[] tensors, int dim=0) -> Tensor`
 */
export function stack(tensors: readonly Tensor[], dim = 0): Tensor {
  const next = putTensors(0, tensors, "stack", "tensors");
  frame[next] = dim;
  return adopt(call(308));
}

/**
 * Views of splitSize entries of dim each, or of the sizes listed.
 *
 * `aten::split.Tensor(Tensor(a -> *) self, int split_size, int dim=0) -> Tensor(a)[]`
 * `aten::split.sizes(Tensor(a -> *) self, int[] split_size, int dim=0) -> Tensor(a)[]`
 */
export function split(self: Tensor, splitSize: number | readonly number[], dim = 0): Tensor[] {
  if (typeof splitSize === "number") {
    frame[0] = handleOf(self, "split", "self");
    frame[1] = splitSize;
    frame[2] = dim;
    return adoptList(call(309));
  }
  frame[0] = handleOf(self, "split", "self");
  const next = putNumbers(1, splitSize, "split", "splitSize");
  frame[next] = dim;
  return adoptList(call(310));
}

/**
 * At most chunks views of equal size along dim.
 *
 * `aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]`
 */
export function chunk(self: Tensor, chunks: number, dim = 0): Tensor[] {
  frame[0] = handleOf(self, "chunk", "self");
  frame[1] = chunks;
  frame[2] = dim;
  return adoptList(call(311));
}

/**
 * Views of each entry of dim, without that dim.
 *
 * `aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]`
 */
export function unbind(self: Tensor, dim = 0): Tensor[] {
  frame[0] = handleOf(self, "unbind", "self");
  frame[1] = dim;
  return adoptList(call(312));
}

/**
 * Coordinate tensors of a grid; indexing "ij" or "xy".
 *
 * `aten::meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]`
 */
export function meshgrid(tensors: readonly Tensor[], indexing: string): Tensor[] {
  const next = putTensors(0, tensors, "meshgrid", "tensors");
  frame[next] = intern(indexing);
  return adoptList(call(313));
}

/**
 * A copy of its own memory.
 *
 * `aten::clone(Tensor self) -> Tensor`
 */
export function clone(self: Tensor): Tensor {
  frame[0] = handleOf(self, "clone", "self");
  return adopt(call(314));
}

/**
 * The same memory outside the autograd graph.
 *
 * `aten::detach(Tensor(a) self) -> Tensor(a)`
 */
export function detach(self: Tensor): Tensor {
  frame[0] = handleOf(self, "detach", "self");
  return adopt(call(315));
}

/**
 * The tensor in another dtype; itself when it has it and copy is false.
 *
 * `aten::to.dtype(Tensor(a) self, ScalarType dtype, bool copy=False) -> Tensor(a)`
 */
export function to(self: Tensor, dtype: DType, copy = false): Tensor {
  frame[0] = handleOf(self, "to", "self");
  frame[1] = dtypeCode(dtype);
  frame[2] = copy ? 1 : 0;
  return adopt(call(316));
}

/**
 * The tensor in the dtype of other.
 *
 * `aten::type_as(Tensor self, Tensor other) -> Tensor`
 */
export function typeAs(self: Tensor, other: Tensor): Tensor {
  frame[0] = handleOf(self, "typeAs", "self");
  frame[1] = handleOf(other, "typeAs", "other");
  return adopt(call(317));
}

/**
 * Elements of src, converted and broadcast, in place.
 *
 * `aten::copy_(Tensor(a!) self, Tensor src) -> Tensor(a!)`
 */
export function copy_(self: Tensor, src: Tensor): Tensor {
  frame[0] = handleOf(self, "copy_", "self");
  frame[1] = handleOf(src, "copy_", "src");
  call(318);
  return self;
}

/**
 * value everywhere, in place.
 *
 * `aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)`
 * `aten::fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)`
 */
export function fill_(self: Tensor, value: number | Tensor): Tensor {
  if (typeof value === "number") {
    frame[0] = handleOf(self, "fill_", "self");
    frame[1] = value;
    call(319);
    return self;
  }
  frame[0] = handleOf(self, "fill_", "self");
  frame[1] = handleOf(value, "fill_", "value");
  call(320);
  return self;
}

/**
 * 0 everywhere, in place.
 *
 * `aten::zero_(Tensor(a!) self) -> Tensor(a!)`
 */
export function zero_(self: Tensor): Tensor {
  frame[0] = handleOf(self, "zero_", "self");
  call(321);
  return self;
}

/**
 * How often the memory has been written to in place.
 *
 * `aten::_version(Tensor self) -> int`
 */
export function writeCount(self: Tensor): number {
  frame[0] = handleOf(self, "writeCount", "self");
  return call(322);
}

/**
 * Uninitialised memory.
 *
 * `aten::empty.memory_format(int[] size, *, ScalarType? dtype=None) -> Tensor`
 */
export function empty(size: readonly number[], dtype?: DType): Tensor {
  const next = putNumbers(0, size, "empty", "size");
  frame[next] = dtype === undefined ? 0 : 1;
  frame[next + 1] = dtype === undefined ? 0 : dtypeCode(dtype);
  return adopt(call(323));
}

/**
 * All 0.
 *
 * `aten::zeros(int[] size, *, ScalarType? dtype=None) -> Tensor`
 */
export function zeros(size: readonly number[], dtype?: DType): Tensor {
  const next = putNumbers(0, size, "zeros", "size");
  frame[next] = dtype === undefined ? 0 : 1;
  frame[next + 1] = dtype === undefined ? 0 : dtypeCode(dtype);
  return adopt(call(324));
}

/**
 * All 1.
 *
 * `aten::ones(int[] size, *, ScalarType? dtype=None) -> Tensor`
 */
export function ones(size: readonly number[], dtype?: DType): Tensor {
  const next = putNumbers(0, size, "ones", "size");
  frame[next] = dtype === undefined ? 0 : 1;
  frame[next + 1] = dtype === undefined ? 0 : dtypeCode(dtype);
  return adopt(call(325));
}

/**
 * All fillValue.
 *
 * `aten::full(int[] size, Scalar fill_value, *, ScalarType? dtype=None) -> Tensor`
 */
export function full(size: readonly number[], fillValue: number, dtype?: DType): Tensor {
  const next = putNumbers(0, size, "full", "size");
  frame[next] = fillValue;
  frame[next + 1] = dtype === undefined ? 0 : 1;
  frame[next + 2] = dtype === undefined ? 0 : dtypeCode(dtype);
  return adopt(call(326));
}

/**
 * start, start + step, … below end.
 *
 * `aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None) -> Tensor`
 */
export function arange(start: number, end: number, step = 1, dtype?: DType): Tensor {
  frame[0] = start;
  frame[1] = end;
  frame[2] = step;
  frame[3] = dtype === undefined ? 0 : 1;
  frame[4] = dtype === undefined ? 0 : dtypeCode(dtype);
  return adopt(call(327));
}

/**
 * steps numbers from start to end, both included.
 *
 * `aten::linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None) -> Tensor`
 */
export function linspace(start: number, end: number, steps: number, dtype?: DType): Tensor {
  frame[0] = start;
  frame[1] = end;
  frame[2] = steps;
  frame[3] = dtype === undefined ? 0 : 1;
  frame[4] = dtype === undefined ? 0 : dtypeCode(dtype);
  return adopt(call(328));
}

/**
 * n × m with ones on the diagonal.
 *
 * `aten::eye.m(int n, int m, *, ScalarType? dtype=None) -> Tensor`
 */
export function eye(n: number, m: number, dtype?: DType): Tensor {
  frame[0] = n;
  frame[1] = m;
  frame[2] = dtype === undefined ? 0 : 1;
  frame[3] = dtype === undefined ? 0 : dtypeCode(dtype);
  return adopt(call(329));
}

/**
 * Uninitialised, shape and dtype of self unless given.
 *
 * `aten::empty_like(Tensor self, *, ScalarType? dtype=None) -> Tensor`
 */
export function emptyLike(self: Tensor, dtype?: DType): Tensor {
  frame[0] = handleOf(self, "emptyLike", "self");
  frame[1] = dtype === undefined ? 0 : 1;
  frame[2] = dtype === undefined ? 0 : dtypeCode(dtype);
  return adopt(call(330));
}

/**
 * 0, shape and dtype of self unless given.
 *
 * `aten::zeros_like(Tensor self, *, ScalarType? dtype=None) -> Tensor`
 */
export function zerosLike(self: Tensor, dtype?: DType): Tensor {
  frame[0] = handleOf(self, "zerosLike", "self");
  frame[1] = dtype === undefined ? 0 : 1;
  frame[2] = dtype === undefined ? 0 : dtypeCode(dtype);
  return adopt(call(331));
}

/**
 * 1, shape and dtype of self unless given.
 *
 * `aten::ones_like(Tensor self, *, ScalarType? dtype=None) -> Tensor`
 */
export function onesLike(self: Tensor, dtype?: DType): Tensor {
  frame[0] = handleOf(self, "onesLike", "self");
  frame[1] = dtype === undefined ? 0 : 1;
  frame[2] = dtype === undefined ? 0 : dtypeCode(dtype);
  return adopt(call(332));
}

/**
 * fillValue, shape and dtype of self unless given.
 *
 * `aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None) -> Tensor`
 */
export function fullLike(self: Tensor, fillValue: number, dtype?: DType): Tensor {
  frame[0] = handleOf(self, "fullLike", "self");
  frame[1] = fillValue;
  frame[2] = dtype === undefined ? 0 : 1;
  frame[3] = dtype === undefined ? 0 : dtypeCode(dtype);
  return adopt(call(333));
}

/**
 * A 0-dim tensor.
 *
 * `aten::scalar_tensor(Scalar s, *, ScalarType? dtype=None) -> Tensor`
 */
export function scalarTensor(s: number, dtype?: DType): Tensor {
  frame[0] = s;
  frame[1] = dtype === undefined ? 0 : 1;
  frame[2] = dtype === undefined ? 0 : dtypeCode(dtype);
  return adopt(call(334));
}

/**
 * Positions of the lower triangle [2, n].
 *
 * `aten::tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=4) -> Tensor`
 */
export function trilIndices(row: number, col: number, offset = 0, dtype: DType = "int64"): Tensor {
  frame[0] = row;
  frame[1] = col;
  frame[2] = offset;
  frame[3] = dtype === undefined ? 0 : 1;
  frame[4] = dtype === undefined ? 0 : dtypeCode(dtype);
  return adopt(call(335));
}

/**
 * Positions of the upper triangle [2, n].
 *
 * `aten::triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=4) -> Tensor`
 */
export function triuIndices(row: number, col: number, offset = 0, dtype: DType = "int64"): Tensor {
  frame[0] = row;
  frame[1] = col;
  frame[2] = offset;
  frame[3] = dtype === undefined ? 0 : 1;
  frame[4] = dtype === undefined ? 0 : dtypeCode(dtype);
  return adopt(call(336));
}
