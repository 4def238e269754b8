import { TroupeError } from "../../../errors/index.ts";
import { type DefinedIn, Definitions } from "../../definitions/index.ts";
import {
  type DType,
  noGrad,
  ops,
  scope,
  Tensor,
  tensor,
  ones as tensorOfOnes,
  zeros as tensorOfZeros,
} from "../../tensor/index.ts";
import { streamOf } from "../random/randomness.ts";
import { logicalRuns, type ParameterSplit } from "./parameter-split.ts";

/** How the first values of a parameter come about. Plain data: it travels in messages and prints in logs. */
export type Initializer =
  | { readonly kind: "normal"; readonly mean: number; readonly std: number }
  | { readonly kind: "uniform"; readonly low: number; readonly high: number }
  | { readonly kind: "constant"; readonly value: number }
  | { readonly kind: "data"; readonly values: readonly number[] }
  | DefinedInitializer;

/** An initializer of a job's own, by name: see {@link defineInitializer}. */
export interface DefinedInitializer extends DefinedIn {
  readonly kind: "defined";
  /** Plain data. */
  readonly settings: unknown;
}

/** What of a parameter an initializer is asked for. */
export interface InitialRange {
  readonly seed: number;
  /** Full name of the parameter. */
  readonly name: string;
  /** Of the whole parameter, however ranks split it. */
  readonly shape: readonly number[];
  /** First element that is asked for, row-major, within the whole parameter. */
  readonly begin: number;
  /** Behind the last one. */
  readonly end: number;
}

/** A pure function: what it gives for an element depends on no other argument than seed, name, shape and settings. */
export type InitialValuesOf<Settings> = (
  range: InitialRange,
  settings: Settings,
) => ArrayLike<number> | Tensor;

const defined = new Definitions<InitialValuesOf<never>>("initializer");

/**
 * Defines an initializer where a module is imported, at its top level; shards, which fill parameters in threads of their
 * own, import the module too.
 * @param module - `import.meta.url` of the module
 * @param name - unique in it
 * @param values - one number for each element of the range
 * @returns makes the initializer for given settings, plain data: `new Parameter(shape, make(settings))`
 * @throws {TroupeError} `DEFINITION` for a module that is no URL
 */
export function defineInitializer<Settings = undefined>(
  module: string,
  name: string,
  values: InitialValuesOf<Settings>,
): (settings: Settings) => DefinedInitializer {
  defined.define({ module, name }, values as InitialValuesOf<never>);
  return (settings) => ({ kind: "defined", module, name, settings });
}

/** Has this thread know what parameters start with. @throws {TroupeError} `DEFINITION` */
export async function loadInitializers(initializers: Iterable<Initializer>): Promise<void> {
  for (const init of initializers) if (init.kind === "defined") await defined.load(init);
}

/** Draws from a normal distribution. */
export function normal(mean: number, std: number): Initializer {
  return { kind: "normal", mean, std };
}

/** Draws from a uniform distribution over [low, high). */
export function uniform(low: number, high: number): Initializer {
  return { kind: "uniform", low, high };
}

/** Every element 0. */
export const zeros: Initializer = { kind: "constant", value: 0 };

/** Every element 1. */
export const ones: Initializer = { kind: "constant", value: 1 };

/** An initializer; or the tensor function of the same name, which the package exports and which is easily taken for it. */
export type InitializerLike = Initializer | typeof tensorOfOnes;

/** @returns the initializer that is meant; what is none, as it is */
export function asInitializer(given: InitializerLike): Initializer {
  if (given === tensorOfOnes) return ones;
  return given === tensorOfZeros ? zeros : (given as Initializer);
}

/** Every element `value`. */
export function constant(value: number): Initializer {
  return { kind: "constant", value };
}

/** Given values, row-major, one for each element of the parameter. */
export function fromValues(values: readonly number[]): Initializer {
  return { kind: "data", values };
}

/** What a parameter is before it has memory: plain data, so that a shard in another thread can fill its slice. */
export interface ParameterSpec {
  /** Full name from the root of the model, as Hugging Face spells it. */
  readonly name: string;
  /** Of what is held: a piece, where the parameter is split. */
  readonly shape: readonly number[];
  /** Which part of the whole parameter it is; left out for the whole. */
  readonly split?: ParameterSplit;
  /** Of the master copy; what is bound for computing may be narrower. */
  readonly dtype: DType;
  readonly init: Initializer;
}

/**
 * Fills `slice` with the initial values of elements [begin, begin + slice.numel) of a parameter, row-major. Random
 * values are a function of (seed, parameter name, element of the whole parameter) alone, so a model initialised piece
 * by piece has the same bits as one initialised whole, for every number of shards and every split.
 * @param slice - contiguous, any shape, float dtype; written in place
 */
export function initializeSlice(
  slice: Tensor,
  spec: Pick<ParameterSpec, "name" | "init" | "shape" | "split">,
  seed: number,
  begin: number,
): void {
  noGrad(() =>
    scope(() => {
      const flat = slice.view([-1]);
      if (spec.split !== undefined) flat.zero_();
      for (const run of logicalRuns(spec.shape, spec.split, begin, slice.numel)) {
        fill(flat.narrow(0, run.begin - begin, run.numel), spec, seed, run.logicalBegin);
      }
    }),
  );
}

type Filled = Pick<ParameterSpec, "name" | "init" | "shape" | "split">;

function fill(slice: Tensor, spec: Filled, seed: number, begin: number): void {
  const { init } = spec;
  switch (init.kind) {
    case "normal":
      return void ops.troupe.philoxNormal_(slice, init.mean, init.std, seed, streamOf(spec.name), begin);
    case "uniform":
      return void ops.troupe.philoxUniform_(slice, init.low, init.high, seed, streamOf(spec.name), begin);
    case "constant":
      return void slice.fill_(init.value);
    case "data":
      return void slice.copy_(tensor(init.values.slice(begin, begin + slice.numel), { dtype: slice.dtype }));
    case "defined":
      return void fillDefined(slice, spec, init, seed, begin);
    default:
      init satisfies never;
  }
}

function fillDefined(
  slice: Tensor,
  { name, shape, split }: Filled,
  init: DefinedInitializer,
  seed: number,
  begin: number,
): void {
  const end = begin + slice.numel;
  const range = { seed, name, shape: split?.logicalShape ?? shape, begin, end };
  const given = defined.get(init)(range, init.settings as never);
  const values = given instanceof Tensor ? given.reshape([-1]) : tensor(Float64Array.from(given));
  if (values.numel !== slice.numel) {
    throw new TroupeError(
      "INITIALIZER",
      {
        where: name,
        expected: `the initializer ${init.name} to give ${slice.numel} numbers for elements ${begin} to ${end - 1}`,
        got: `${values.numel}`,
      },
      { fields: { name, initializer: init.name, begin, end } },
    );
  }
  slice.copy_(values);
}
