import { isRecord, TroupeError } from "../../../errors/index.ts";
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

/** Describes the initial values of a parameter. Plain data: it can be sent in messages and printed in logs. */
export type Initializer =
  | { readonly kind: "normal"; readonly mean: number; readonly std: number }
  | { readonly kind: "uniform"; readonly low: number; readonly high: number }
  | { readonly kind: "constant"; readonly value: number }
  | { readonly kind: "data"; readonly values: readonly number[] }
  | DefinedInitializer;

/** A user's initializer, by name; see {@link defineInitializer}. */
export interface DefinedInitializer extends DefinedIn {
  readonly kind: "defined";
  /** Plain data. */
  readonly settings: unknown;
}

/** The range of a parameter's elements that an initializer computes. */
export interface InitialRange {
  readonly seed: number;
  /** Full name of the parameter. */
  readonly name: string;
  /** Shape of the complete parameter, even if ranks split it. */
  readonly shape: readonly number[];
  /** First element, row-major, in the complete parameter. */
  readonly begin: number;
  /** End of the range, exclusive. */
  readonly end: number;
}

/**
 * Computes initial values. It must be a pure function: the value of an element depends only on seed, name, shape and settings.
 */
export type InitialValuesOf<Settings> = (
  range: InitialRange,
  settings: Settings,
) => ArrayLike<number> | Tensor;

const defined = new Definitions<InitialValuesOf<never>>("initializer");

/**
 * Defines an initializer. Call it at the top level of a module, because shards fill parameters in threads of their own and
 * import the module too.
 * @param module - `import.meta.url` of the module
 * @param name - unique in the module
 * @param values - returns one number for each element of the range
 * @returns a function that makes the initializer for settings (plain data): `new Parameter(shape, make(settings))`
 * @throws {TroupeError} `DEFINITION` if `module` is not a URL
 */
export function defineInitializer<Settings = undefined>(
  module: string,
  name: string,
  values: InitialValuesOf<Settings>,
): (settings: Settings) => DefinedInitializer {
  defined.define({ module, name }, values as InitialValuesOf<never>);
  return (settings) => ({ kind: "defined", module, name, settings });
}

/** Loads the modules of users' initializers into this thread. @throws {TroupeError} `DEFINITION` */
export async function loadInitializers(initializers: Iterable<Initializer>): Promise<void> {
  for (const init of initializers) {
    if (init.kind !== "defined") continue;
    await defined.load(init);
    await loadInitializers(initializersIn(init.settings));
  }
}

/** One that changes the values of another has it among its settings. */
function initializersIn(settings: unknown): Initializer[] {
  const isInitializer = (value: unknown) => isRecord(value) && value.kind === "defined";
  return isRecord(settings) ? (Object.values(settings).filter(isInitializer) as Initializer[]) : [];
}

/** Initializes with a normal distribution. */
export function normal(mean: number, std: number): Initializer {
  return { kind: "normal", mean, std };
}

/** Initializes with a uniform distribution over [low, high). */
export function uniform(low: number, high: number): Initializer {
  return { kind: "uniform", low, high };
}

/** Initializes with zeros. */
export const zeros: Initializer = { kind: "constant", value: 0 };

/** Initializes with ones. */
export const ones: Initializer = { kind: "constant", value: 1 };

/** An initializer, or the tensor function `ones` or `zeros`, which is easily mistaken for the initializer of that name. */
export type InitializerLike = Initializer | typeof tensorOfOnes;

/** Returns the initializer that was meant; anything else unchanged. */
export function asInitializer(given: InitializerLike): Initializer {
  if (given === tensorOfOnes) return ones;
  return given === tensorOfZeros ? zeros : (given as Initializer);
}

/** Initializes every element with `value`. */
export function constant(value: number): Initializer {
  return { kind: "constant", value };
}

/** Initializes with given values, row-major, one for each element of the parameter. */
export function fromValues(values: readonly number[]): Initializer {
  return { kind: "data", values };
}

/** Describes a parameter before it has memory. Plain data, so that a shard in another thread can fill its slice. */
export interface ParameterSpec {
  /** Full name from the root of the model, as Hugging Face spells it. */
  readonly name: string;
  /** Shape of the part that is held, if the parameter is split. */
  readonly shape: readonly number[];
  /** The part of the complete parameter; left out if it is complete. */
  readonly split?: ParameterSplit;
  /** Dtype of the master copy; the tensor bound for computing may have lower precision. */
  readonly dtype: DType;
  readonly init: Initializer;
}

/**
 * Fills `slice` with the initial values of elements [begin, begin + slice.numel) of a parameter, row-major. Random values
 * depend only on the seed, the parameter's name and the element's index in the complete parameter, so that a model
 * initialized in pieces has the same bits as one initialized at once, for every number of shards and every split.
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
      for (const run of logicalRuns(spec.shape, spec.split, begin, slice.numel))
        fill(flat.narrow(0, run.begin - begin, run.numel), spec, seed, run.logicalBegin);
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
  if (values.numel !== slice.numel)
    throw new TroupeError("INITIALIZER", {
      where: name,
      expected: `the initializer ${init.name} to return ${slice.numel} numbers for elements ${begin} to ${end - 1}`,
      got: `${values.numel}`,
      fields: { name, initializer: init.name, begin, end },
    });
  slice.copy_(values);
}
