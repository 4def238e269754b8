import type { Module, Parameter } from "../../../compute/nn/index.ts";
import type { OptimizerSpec, SavedProgress } from "../../../compute/optim/index.ts";
import { type FlatBlock, isUpdated, keepsState } from "../../../compute/parallel/index.ts";
import type { PartPlan } from "../../protocols/index.ts";
import { partsOf } from "../../state/saving/index.ts";

/** The report of a step's training, if it differs from the step before. */
export interface TrainingChange {
  /** Names of the model's parameters that the step does not train. */
  readonly frozen?: readonly string[];
  /** The parts that this rank's shard sends from this step on when the state is saved. */
  readonly saved?: readonly PartPlan[];
}

/** Tracks the parameters that steps train, and the blocks with optimizer state: those that some step so far was to train. */
export class StepTraining {
  readonly #parameters: readonly (readonly [name: string, parameter: Parameter])[];
  readonly #layouts: readonly FlatBlock[];
  readonly #rank: number;
  readonly #optimizers: readonly OptimizerSpec[];
  /** By index. */
  readonly #kept: Set<number>;
  /** The frozen parameters as last reported, and as last set before that. */
  #frozen: readonly string[] | undefined;
  #flags: readonly string[] | undefined;

  /** @param model - with the parts of other stages @param progress - at the run's beginning; undefined without updates */
  constructor(
    model: Module,
    layouts: readonly FlatBlock[],
    rank: number,
    optimizers: readonly OptimizerSpec[],
    progress: SavedProgress | undefined,
  ) {
    this.#parameters = [...model.namedParameters()];
    this.#layouts = layouts;
    this.#rank = rank;
    this.#optimizers = optimizers;
    const kept = layouts.filter((layout) => keepsState(layout, progress));
    this.#kept = new Set(kept.map(({ index }) => index));
  }

  /** The parts that this rank's shard sends when the state is saved. */
  get saved(): readonly PartPlan[] {
    return partsOf(this.#layouts, this.#rank, this.#optimizers, ({ index }) => this.#kept.has(index));
  }

  /** Call it after a step's first forward. @returns the names of frozen parameters, if they differ from the last call's */
  begun(): readonly string[] | undefined {
    const flags = this.#namesOf(({ trainable }) => !trainable);
    if (isSame(flags, this.#flags)) return undefined;
    this.#flags = flags;
    return flags;
  }

  /** @param trained - all parameters that a step trains */
  made(trained: ReadonlySet<Parameter>): TrainingChange {
    const frozen = this.#namesOf((parameter) => !trained.has(parameter));
    if (isSame(frozen, this.#frozen)) return {};
    this.#frozen = frozen;
    const names = new Set(frozen);
    const { size } = this.#kept;
    for (const layout of this.#layouts) if (isUpdated(layout, names)) this.#kept.add(layout.index);
    return this.#kept.size === size ? { frozen } : { frozen, saved: this.saved };
  }

  /** @returns the names of parameters, in the order of the model */
  namesOf(parameters: ReadonlySet<Parameter>): readonly string[] {
    return this.#namesOf((parameter) => parameters.has(parameter));
  }

  #namesOf(isMeant: (parameter: Parameter) => boolean): readonly string[] {
    return this.#parameters.flatMap(([name, parameter]) => (isMeant(parameter) ? name : []));
  }
}

const isSame = (names: readonly string[], before: readonly string[] | undefined) =>
  names.length === before?.length && names.every((name, index) => name === before[index]);
