import { scope, type Tensor } from "../tensor/index.ts";
import type { LocalUpdate } from "./local-updates.ts";
import type { ParameterGroup } from "./parameter-groups.ts";
import type { CommonSpec } from "./parameter-options.ts";

/** A parameter's elements within a flat stretch of memory. Plain data. */
export interface FlatPiece {
  readonly parameter: {
    readonly name: string;
    readonly shape: readonly number[];
    readonly numel: number;
    /** Defined if this is a part of a parameter of which other ranks hold the rest. */
    readonly split?: { readonly logicalShape: readonly number[] } | undefined;
  };
  /** First element, within the parameter. */
  readonly parameterBegin: number;
  /** First element, within the stretch. */
  readonly rangeBegin: number;
  readonly numel: number;
}

/** A contiguous part of one block's owned range whose parameters one optimizer updates; padding goes with it. */
export interface Stretch<Piece extends FlatPiece = FlatPiece> {
  /** First element, within the block's flat buffer. */
  readonly begin: number;
  readonly numel: number;
  readonly pieces: readonly Piece[];
}

/** State that an optimizer keeps beside a stretch's parameters: one flat float32 tensor that starts as zeros. */
export interface StateLayout<Piece extends FlatPiece = FlatPiece> {
  /** Its name in a checkpoint, before that of the parameter: `<kind>.<parameter>`. */
  readonly kind: string;
  readonly numel: number;
  /**
   * Pieces and their offsets; a piece's parameter has the shape of the state in a checkpoint. State that is equal on several
   * ranks is read by all of them and written once.
   */
  readonly pieces: readonly Piece[];
}

/** The part of one block that one rule updates. */
export interface UpdateShare {
  /** Every parameter of the block that the rule names and that makes this update, owned here or not: the same on all ranks. */
  readonly parameters: readonly FlatPiece["parameter"][];
  readonly stretches: readonly OwnedStretch[];
}

/** A stretch with its memory: everything float32, contiguous and flat, except `lowPrecision`. */
export interface OwnedStretch extends Stretch {
  readonly master: Tensor;
  /** Summed over ranks and micro-batches. */
  readonly gradient: Tensor;
  /** The low-precision copy that the ranks compute with; undefined if they compute with the master. */
  readonly lowPrecision: Tensor | undefined;
  /** By kind, in the order of {@link UpdateRule.stateOf}. */
  readonly state: Readonly<Record<string, Tensor>>;
  /** The group index of each piece. */
  readonly pieceGroups: readonly number[];
}

/**
 * Stochastic rounding of low-precision parameters: up or down so that the mean is the master's value, and small updates count
 * sometimes. A draw is a function of (seed, update, parameter, element). Plain data. @see Gupta et al. 2015,
 * https://arxiv.org/abs/1502.02551
 */
export interface StochasticRounding {
  readonly seed: number;
}

/** The figures of one step's update. Plain data. */
export interface UpdateStep {
  /** Counts updates of these parameters from 1: the exponent of Adam's bias corrections. Skipped steps do not count. */
  readonly updateIndex: number;
  /** One learning rate a group of the rule. */
  readonly learningRates: readonly number[];
  /** Factor of the gradient: 1 / micro-batches / loss scale, times the clip factor. */
  readonly gradientScale: number;
  /** Factor of the gradient for each rule that clips its own parameters by itself; undefined for the others. */
  readonly ownScales?: readonly (number | undefined)[];
  /**
   * A further factor of {@link gradientScale} that only the device knows: for a kernel's `scale`. From `gradientScales`,
   * float64 [2]. Used only if the rule says {@link UpdateRule.takesScale}.
   */
  readonly scale?: Tensor | undefined;
}

/**
 * Factors of a step's gradient that only the device knows, each as {@link UpdateStep.scale}: for all rules, and for those that
 * clip their own parameters by themselves.
 */
export interface DeviceScales {
  readonly all: Tensor;
  readonly own: readonly (Tensor | undefined)[];
}

/**
 * An optimizer as a shard applies it to its owned range. An update is a generator: if it needs a figure of complete parameters,
 * it yields a float64 tensor of its share and is resumed with those of all ranks, in rank order. Every rank yields equally
 * often, even one that owns nothing of a block.
 */
export interface UpdateRule {
  readonly groups: readonly ParameterGroup[];
  /** Whether updates exchange values with other ranks: whether {@link update} ever yields. */
  readonly exchanges: boolean;
  /**
   * Whether a fused kernel updates: it needs no gradient norm on the host, since it applies {@link UpdateStep.scale}, and reads
   * a gradient of any float dtype. Default: no; the gradient is float32.
   */
  readonly takesScale?: boolean;
  /** The kinds of parameters of which it can update a part: split layers, and experts that are dealt. */
  readonly updatesPartOf: { readonly layers: boolean; readonly experts: boolean };
  /** Rounding of the low-precision copy. The copy's holder rounds stochastically, after the update. Default: to nearest. */
  readonly rounding?: StochasticRounding | undefined;
  /**
   * The state of a stretch. State of consecutive pieces lies side by side, in their order, so that some of them can be updated
   * without the others: {@link update} may be given parts of the stretches given here.
   */
  stateOf<Piece extends FlatPiece>(stretch: Stretch<Piece>): readonly StateLayout<Piece>[];
  /** Updates the owned part of one block, in place; may overwrite the gradient. */
  update(share: UpdateShare, step: UpdateStep): Generator<Tensor, void, readonly Tensor[]>;
}

/** The part of a rule that the optimizer itself defines; its spec has the rest. */
export type OwnRule = Omit<UpdateRule, "groups" | "rounding">;

/** A kind of optimizer: how its specs become updates. */
export interface OptimizerKind<Spec> {
  readonly rule: (spec: Spec) => OwnRule;
  /**
   * The formulas in plain tensor operations: updates one parameter in place, on one device. Temporaries are the caller's scope's.
   * The rule is tested against it; a job's own optimizers have none.
   */
  readonly reference?: (spec: Spec, update: LocalUpdate) => void;
}

/**
 * The rule of an optimizer that updates each element by itself, in one pass of a fused kernel.
 * @param kinds - of its state, each of the parameters' shape
 * @param kernel - updates a stretch; the step's gradient scale is negative if the optimizer maximizes
 */
export function fusedRule(
  { groups, maximize }: CommonSpec,
  kinds: readonly string[],
  kernel: (stretch: OwnedStretch, segments: Segments, step: UpdateStep) => void,
): OwnRule {
  return {
    exchanges: false,
    takesScale: true,
    updatesPartOf: ALL_PARTS,
    stateOf: (stretch) => elementwise(kinds, stretch),
    *update({ stretches }, step) {
      const signed = { ...step, gradientScale: maximize ? -step.gradientScale : step.gradientScale };
      for (const stretch of stretches)
        scope(() => kernel(stretch, segmentsOf(stretch, groups, step), signed));
    },
  };
}

/** For a rule that treats every element by itself. */
export const ALL_PARTS = { layers: true, experts: true } as const;

/** The segments of a stretch in which a fused kernel's settings change: one a piece, up to the start of the next. */
export interface Segments {
  readonly ends: readonly number[];
  readonly learningRates: readonly number[];
  readonly weightDecays: readonly number[];
}

/** @returns a stretch's segments with their groups' settings for this step; padding goes with the piece before it */
export function segmentsOf(
  stretch: OwnedStretch,
  groups: readonly ParameterGroup[],
  step: UpdateStep,
): Segments {
  const { pieces, pieceGroups, numel } = stretch;
  return {
    ends: pieces.map((_, index) => pieces[index + 1]?.rangeBegin ?? numel),
    learningRates: pieceGroups.map((group) => step.learningRates[group] as number),
    weightDecays: pieceGroups.map((group) => groups[group]?.weightDecay ?? 0),
  };
}

/** State of the parameters' own shape, one tensor a kind. */
export function elementwise<Piece extends FlatPiece>(
  kinds: readonly string[],
  { numel, pieces }: Stretch<Piece>,
): StateLayout<Piece>[] {
  return kinds.map((kind) => ({ kind, numel, pieces }));
}

/** @returns the memory of one kind of a stretch's state */
export function stateTensor({ state }: OwnedStretch, kind: string): Tensor {
  const tensor = state[kind];
  if (tensor === undefined) throw new Error(`[optim] the state ${kind} is missing`);
  return tensor;
}
