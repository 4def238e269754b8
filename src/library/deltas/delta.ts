import { type Module, ModuleBuffer, type Parameter } from "../../compute/nn/index.ts";
import type { Tensor } from "../../compute/tensor/index.ts";
import { optionErrors, TroupeError } from "../../errors/index.ts";

/** Options of most kinds of deltas. */
export interface CommonDeltaOptions {
  /** The model's own modules to train and save as well. Default: the new head of the model's task. */
  readonly modulesToSave?: readonly string[] | undefined;
  /** A folder with initial values: peft's, for kinds that peft has. */
  readonly folder?: string | undefined;
}

/** A few parameters that are added to a model and trained instead of its own. */
export interface Delta {
  /** The kind in `adapter_config.json`, such as `LORA`. */
  readonly peftType: string;
  /** A peft folder with initial values. Default: random, or as in the base. */
  readonly folder?: string | undefined;
  /**
   * Adds the trained parameters to the model's modules, as children.
   * @param model - without memory; its own names and shapes do not change
   * @throws {TroupeError} `DELTA_TARGET` for a model that the delta does not fit
   */
  attach(model: Module): void;
  /** Whether one of the model's own parameters is trained too. @param name - in the model */
  trains(name: string, model: Module): boolean;
  /** The module that computes the vectors which peft saves as `prompt_embeddings`. It is saved itself only during training. */
  encoder?(model: Module): VectorEncoder;
  /** Name of a parameter in a peft file, if it does not follow from its module. */
  entryOf?(name: string): string;
  /** The fields of `adapter_config.json`. Plain data. */
  configJson(model: Module): DeltaJson;
}

/** Computes the vectors of virtual tokens, [n, D]. */
export interface VectorEncoder extends Module {
  forward(): Tensor;
}

/** The contents of an `adapter_config.json`. */
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
 * Applies a delta to a model: then only the delta, and the modules of the model that it names, are trained and saved. All else is
 * the base: frozen, without master weights and optimizer state, and in no checkpoint. The runtime applies a job's delta; call this
 * for a model with several.
 * @param model - without memory
 * @returns the model
 * @throws {TroupeError} `DELTA_TARGET` if it does not fit, or the model has one already
 */
export function applyDelta<M extends Module>(model: M, delta: Delta): M {
  if (deltas.has(model)) throw deltaTarget("a model without a delta", "one that already has a delta");
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

/** Whether any part of a model is the frozen base of a delta. */
export function hasBase(model: Module): boolean {
  return model
    .namedState()
    .values()
    .some(({ role }) => role === "base");
}

/** Float buffers that forward writes are not base: they change, and are saved. */
function roleOf(name: string, parameter: Parameter, delta: Delta, model: Module): Parameter["role"] {
  const isWritten = parameter instanceof ModuleBuffer && parameter.dtype.includes("float");
  return isWritten || delta.trains(name, model) ? "model" : "base";
}

/** The error for a model that a delta does not fit. */
export function deltaTarget(expected: string, got: string, hint?: string): TroupeError {
  return new TroupeError("DELTA_TARGET", { where: "delta", expected, got, ...(hint && { hint }) });
}

/** The error for an option of a delta that is out of range. */
export const deltaOption = optionErrors("DELTA_OPTION", "delta");
