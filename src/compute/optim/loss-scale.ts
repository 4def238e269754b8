import { optionError } from "./option-error.ts";

/**
 * Factor of the loss before backward, and divisor of the gradient at the update, so that small gradients stay above the
 * smallest number of float16. Plain data; part of a checkpoint.
 */
export interface LossScaleState {
  readonly scale: number;
  /** Steps without overflow since the scale last changed. */
  readonly goodSteps: number;
  /** Overflows that are still forgiven before the scale shrinks; only Megatron's rules count them down. */
  readonly hysteresis: number;
}

/** One scale for the complete run; a step that overflows is skipped. */
export interface StaticLossScale {
  readonly kind: "static";
  readonly scale: number;
}

/** BMTrain's OptimManager. */
export interface BMTrainLossScale {
  readonly kind: "bmtrain";
  /** Default: 65536. */
  readonly scale?: number;
  /** Divisor of the scale at an overflow, and its factor after `goodSteps`. Default: 2. */
  readonly factor?: number;
  /** Steps without overflow after which the scale grows. Default: 1024. */
  readonly goodSteps?: number;
  /** Default: 1. */
  readonly min?: number;
  /** Default: Infinity. */
  readonly max?: number;
  /** Keeps the scale between min and max; BMTrain itself may pass either by one factor. Default: true. */
  readonly clamp?: boolean;
}

/** Megatron's DynamicGradScaler: overflows are forgiven before the scale halves. */
export interface MegatronLossScale {
  readonly kind: "megatron";
  /** Default: 2 ** 32. */
  readonly scale?: number;
  /** Default: 1. */
  readonly min?: number;
  /** Steps without overflow after which the scale doubles. Default: 1000. */
  readonly window?: number;
  /** At which overflow since the last growth the scale halves. Default: 2. */
  readonly hysteresis?: number;
}

/** torch.amp.GradScaler. */
export interface TorchLossScale {
  readonly kind: "torch";
  /** Default: 65536. */
  readonly scale?: number;
  /** Default: 2. */
  readonly growthFactor?: number;
  /** Default: 0.5. */
  readonly backoffFactor?: number;
  /** Default: 2000. */
  readonly growthInterval?: number;
}

/** The rules of the loss scale. Plain data. */
export type LossScaleRule = StaticLossScale | BMTrainLossScale | MegatronLossScale | TorchLossScale;

/** A rule's start, and its next state after an overflow and after a good step. */
interface Rules {
  readonly initial: LossScaleState;
  overflow(state: LossScaleState): LossScaleState;
  good(state: LossScaleState): LossScaleState;
}

/**
 * @returns where a rule starts
 * @throws {TroupeError} `OPTIMIZER_OPTION` for a number out of range
 */
export function initialLossScale(rule: LossScaleRule): LossScaleState {
  return rulesOf(rule).initial;
}

/** @returns what follows a step; one that overflowed is skipped on all ranks together */
export function nextLossScale(
  rule: LossScaleRule,
  state: LossScaleState,
  overflowed: boolean,
): LossScaleState {
  const rules = rulesOf(rule);
  const next = overflowed ? rules.overflow(state) : rules.good(state);
  return next.scale <= LARGEST_SCALE ? next : { ...next, scale: state.scale };
}

/** The scale multiplies a float32. */
const LARGEST_SCALE = 2 ** 127;

function rulesOf(rule: LossScaleRule): Rules {
  switch (rule.kind) {
    case "static":
      return { initial: start(rule.scale, 0), overflow: (state) => state, good: (state) => state };
    case "bmtrain":
      return bmtrain(rule);
    case "megatron":
      return megatron(rule);
    case "torch":
      return torch(rule);
    default:
      throw optionError("lossScale.kind", "static, bmtrain, megatron or torch", (rule as LossScaleRule).kind);
  }
}

/** At the floor nothing changes at an overflow, not even the count of good steps. */
function bmtrain(rule: BMTrainLossScale): Rules {
  const { scale = 65_536, goodSteps: needed = 1024, min = 1, max = Number.POSITIVE_INFINITY } = rule;
  const { clamp = true } = rule;
  const given = positive("lossScale.factor", rule.factor ?? 2);
  const factor = given < 1 ? 1 / given : given;
  count("lossScale.goodSteps", needed);
  atMost(scale, min);
  const within = (value: number) => (clamp ? Math.min(max, Math.max(min, value)) : value);
  return {
    initial: start(scale, 0),
    overflow: (state) =>
      state.scale > min ? { ...state, scale: within(state.scale / factor), goodSteps: 0 } : state,
    good: (state) => {
      const goodSteps = state.goodSteps + 1;
      const grows = goodSteps >= needed && state.scale < max;
      return grows
        ? { ...state, scale: within(state.scale * factor), goodSteps: 0 }
        : { ...state, goodSteps };
    },
  };
}

/** Once spent, forgiveness comes back only with growth: until then every overflow halves. */
function megatron(rule: MegatronLossScale): Rules {
  const { scale = 2 ** 32, min = 1, window = 1000, hysteresis = 2 } = rule;
  count("lossScale.window", window);
  count("lossScale.hysteresis", hysteresis);
  positive("lossScale.min", min);
  atMost(scale, min);
  return {
    initial: start(scale, hysteresis),
    overflow: (state) => {
      const left = state.hysteresis - 1;
      return {
        scale: left <= 0 ? Math.max(state.scale / 2, min) : state.scale,
        goodSteps: 0,
        hysteresis: left,
      };
    },
    good: (state) =>
      state.goodSteps + 1 >= window
        ? { scale: state.scale * 2, goodSteps: 0, hysteresis }
        : { ...state, goodSteps: state.goodSteps + 1 },
  };
}

/** The scale lives in float32, as in torch, and does not grow to infinity. */
function torch(rule: TorchLossScale): Rules {
  const { scale = 65_536, growthFactor = 2, backoffFactor = 0.5, growthInterval = 2000 } = rule;
  if (!(growthFactor > 1)) throw optionError("lossScale.growthFactor", "> 1", growthFactor);
  if (!(backoffFactor > 0 && backoffFactor < 1))
    throw optionError("lossScale.backoffFactor", "between 0 and 1", backoffFactor);
  count("lossScale.growthInterval", growthInterval);
  return {
    initial: start(scale, 0),
    overflow: (state) => ({ ...state, scale: Math.fround(state.scale * backoffFactor), goodSteps: 0 }),
    good: (state) => {
      if (state.goodSteps + 1 < growthInterval) return { ...state, goodSteps: state.goodSteps + 1 };
      const grown = Math.fround(state.scale * growthFactor);
      return { ...state, scale: grown < Number.POSITIVE_INFINITY ? grown : state.scale, goodSteps: 0 };
    },
  };
}

function start(scale: number, hysteresis: number): LossScaleState {
  if (!(scale > 0 && scale <= LARGEST_SCALE))
    throw optionError("lossScale.scale", "from 0 to 2 ** 127", scale);
  return { scale, goodSteps: 0, hysteresis };
}

/** Refuses a minimum above the scale: the first overflow would raise it, or nothing would ever lower it. */
function atMost(scale: number, min: number): void {
  if (min > scale) throw optionError("lossScale.min", `at most the scale, ${scale}`, min);
}

function positive(option: string, value: number): number {
  if (value > 0 && value < Number.POSITIVE_INFINITY) return value;
  throw optionError(option, "a positive number", value);
}

function count(option: string, value: number): void {
  if (!(Number.isSafeInteger(value) && value >= 1)) throw optionError(option, "a whole number ≥ 1", value);
}
