import { type Module, ModuleBuffer, type Parameter } from "../../compute/nn/index.ts";
import type { Tensor } from "../../compute/tensor/index.ts";
import { TroupeError } from "../../errors/index.ts";

/** A few parameters to train instead of a model's own, added to it from outside. */
export interface Delta {
  /** The kind in `adapter_config.json`, such as `LORA`. */
  readonly peftType: string;
  /** A peft folder with initial values. Default: drawn, and as the base has them. */
  readonly folder?: string | undefined;
  /**
   * Gives the model's modules what is tuned, as children of theirs.
   * @param model - without memory; names and shapes of its own stay as they are
   * @throws {TroupeError} `DELTA_TARGET` for a model that it cannot be put to
   */
  attach(model: Module): void;
  /** Whether a parameter of the model's own is trained beside. @param name - in the model */
  trains(name: string, model: Module): boolean;
  /** What makes the vectors that peft writes in place of it, as `prompt_embeddings`: only while it is tuned it is kept itself. */
  encoder?(model: Module): VectorEncoder;
  /** What a peft file calls a parameter, where it is not by its module. */
  entryOf?(name: string): string;
  /** What peft has to know of it beside the values: the fields of `adapter_config.json`. Plain data. */
  configJson(model: Module): DeltaJson;
}

/** Makes the vectors of virtual positions, [n, D]. */
export interface VectorEncoder extends Module {
  forward(): Tensor;
}

/** What stands in an `adapter_config.json`. */
export type DeltaJson = Readonly<Record<string, JsonLike>>;
type JsonLike =
  | string
  | number
  | boolean
  | null
  | readonly JsonLike[]
  | { readonly [name: string]: JsonLike };

const deltas = new WeakMap<Module, Delta>();

/**
 * Applies a delta to a model: from then on only the delta, and the modules of the model that it names, are trained and saved. All
 * else is the base: frozen, without master weights and optimizer state, and in no checkpoint. The runtime applies a job's own
 * delta; call this for a model with several.
 * @param model - without memory
 * @returns the model
 * @throws {TroupeError} `DELTA_TARGET` if it does not fit, or the model has one already
 */
export function applyDelta<M extends Module>(model: M, delta: Delta): M {
  if (deltas.has(model)) throw deltaTarget("a model without a delta", "one that has it already");
  const own = new Map(model.namedState());
  delta.attach(model);
  for (const [name, parameter] of model.namedState())
    parameter.role = own.has(name) ? roleOf(name, parameter, delta, model) : "delta";
  if ([...model.namedParameters().values()].every(({ role }) => role === "base"))
    throw deltaTarget("a delta that trains something", `none of ${model.constructor.name}'s parameters`);
  deltas.set(model, delta);
  return model;
}

/** The delta that was applied to a model, or undefined. */
export function deltaOf(model: Module): Delta | undefined {
  return deltas.get(model);
}

/** The part of a model's state that is trained and saved: all but the base of its deltas. */
export function tunedState(model: Module): Map<string, Parameter> {
  return new Map([...model.namedState()].filter(([, { role }]) => role !== "base"));
}

/** Whether a model, or some part of it, stands on a base. */
export function hasBase(model: Module): boolean {
  return model
    .namedState()
    .values()
    .some(({ role }) => role === "base");
}

/** Floats that forward writes are no base: they change, and are saved. */
function roleOf(name: string, parameter: Parameter, delta: Delta, model: Module): Parameter["role"] {
  const isWritten = parameter instanceof ModuleBuffer && parameter.dtype.includes("float");
  return isWritten || delta.trains(name, model) ? "model" : "base";
}

/** A model that a delta does not fit. */
export function deltaTarget(expected: string, got: string, hint?: string): TroupeError {
  return new TroupeError("DELTA_TARGET", { where: "delta", expected, got, ...(hint && { hint }) });
}

/** An option of a delta out of its range. */
export function deltaOption(option: string, expected: string, got: unknown): TroupeError {
  return new TroupeError(
    "DELTA_OPTION",
    { where: "delta", expected: `${option} to be ${expected}`, got: `${got}` },
    { fields: { option, got } },
  );
}
