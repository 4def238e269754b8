import { TroupeError } from "../../../errors/index.ts";
import { type Module, presentRecording, type Randomness, recordedOnce, wrapForward } from "../../nn/index.ts";
import { type AutocastDType, autocast, gradEnabled, noGrad, type Tensor } from "../../tensor/index.ts";
import { type BlockPlan, type BlockUnit, ROOT_UNIT } from "../blocks/plan-blocks.ts";
import type { BlockRange } from "../layout/stage-cut.ts";
import type { BlockTape } from "../tape/block-tape.ts";
import type { BlockPrograms } from "../tape/programs.ts";
import { RecomputedParts } from "../tape/recomputed-parts.ts";
import type { BlockGathers } from "./block-gathers.ts";
import { StageEnd, StagePass } from "./stage-pass.ts";

/** The result of a forward pass on the last stage; on others the tensors for the next stage. */
export interface Forwarded<Result> {
  /** The caller's to dispose. */
  readonly result: Result | undefined;
  /** The engine's until the backward of the pass, if it was recorded; else the caller's. */
  readonly sent: readonly Tensor[];
}

/**
 * A model's blocks, with their forward wrapped. In a pass a call gathers the block's parameters, goes onto the pass's tape, or
 * skips a block of another stage.
 */
export class WrappedBlocks {
  readonly #plan: BlockPlan;
  readonly #gathers: Pick<BlockGathers<unknown>, "need" | "release" | "parameters">;
  readonly #randomness: Randomness | undefined;
  readonly #programs: BlockPrograms | undefined;
  readonly #parts = new RecomputedParts();
  readonly #unwrap: (() => void)[] = [];
  /** The forward pass that runs and the tape that records it, if gradients are wanted. */
  #pass: StagePass | undefined;
  #tape: BlockTape | undefined;

  /**
   * @param options.autocast - dtype that operators cast to in forward; undefined for none
   * @param options.randomness - the model's random numbers, if it draws any
   * @param options.programs - replay calls without gradients; those with gradients are the tape's
   */
  constructor(
    plan: BlockPlan,
    gathers: Pick<BlockGathers<unknown>, "need" | "release" | "parameters">,
    options: {
      readonly autocast?: AutocastDType | undefined;
      readonly randomness: Randomness | undefined;
      readonly programs: BlockPrograms | undefined;
    },
  ) {
    this.#plan = plan;
    this.#gathers = gathers;
    const dtype = options.autocast;
    this.cast = dtype === undefined ? (body) => body() : (body) => autocast(dtype, body);
    this.#randomness = options.randomness;
    this.#programs = options.programs;
  }

  /** Wraps every block, and the parts of blocks that backward computes again. */
  wrap(): void {
    this.#plan.units.forEach(({ module, recompute }, unit) => {
      if (module === undefined) return;
      this.#unwrap.push(this.#wrapBlock(module, unit));
      if (typeof recompute === "boolean") return;
      const modules = module.namedModules();
      for (const name of recompute)
        this.#unwrap.push(this.#parts.wrap(modules.get(name) as Module, this.#computing));
    });
  }

  unwrap(): void {
    for (const unwrap of this.#unwrap.splice(0)) unwrap();
  }

  /**
   * Runs one forward pass through one chunk of this stage.
   * @param received - from the stage before; empty on the first
   * @param tape - records the pass; undefined if no gradients are wanted
   * @throws errors of `body`
   */
  run<R>(
    chunk: number,
    body: () => R,
    received: readonly Tensor[],
    tape: BlockTape | undefined,
  ): Forwarded<R> {
    this.#gathers.need(ROOT_UNIT);
    const { stages, ranges } = this.#plan;
    const range = ranges[chunk] as BlockRange;
    const { calls, virtualStageOf, numStages, numChunks } = stages;
    const hasOwnEnd = calls.length > 0 && virtualStageOf.at(-1) !== numStages * numChunks - 1;
    const pass = new StagePass(calls, range, received, hasOwnEnd ? calls.length : undefined);
    presentRecording()?.begin(range.begin > 0);
    this.#randomness?.restart();
    this.#pass = numStages * numChunks > 1 ? pass : undefined;
    this.#tape = tape;
    try {
      const result = this.cast(body);
      this.#pass?.checkResult(result);
      return { result, sent: [] };
    } catch (signal) {
      if (!(signal instanceof StageEnd && signal.pass === pass)) throw signal;
      return { result: undefined, sent: pass.sent };
    } finally {
      this.#pass = undefined;
      this.#tape = undefined;
    }
  }

  /** Computes `body` as forward does, with autocast if any. */
  readonly cast: <R>(body: () => R) => R;

  /** One call of a block or a part of one, which backward may run again: it casts and draws as it did in forward. */
  readonly #computing = (forward: (...args: unknown[]) => unknown): ((...args: unknown[]) => unknown) => {
    const run = (...args: unknown[]) => this.cast(() => forward(...args));
    const drawn = this.#randomness?.drawnOnce(run) ?? run;
    return this.#plan.region?.paddedOnce(drawn) ?? drawn;
  };

  #wrapBlock(module: Module, unit: number): () => void {
    return wrapForward(module, (forward, inputs) => {
      const compute = this.#computing(forward as (...args: unknown[]) => unknown);
      const run = recordedOnce((...args: unknown[]) => {
        const result = compute(...args);
        this.#gathers.parameters.refuseViews(this.#unit(unit), result);
        return result;
      });
      const entered = this.#pass?.enter(unit - 1, inputs) ?? { here: true, args: inputs };
      const recording = presentRecording();
      if (!entered.here) {
        // A block of this stage's other chunks is skipped like those of other stages.
        const { parameters } = this.#gathers;
        const elsewhere = () =>
          parameters.asShapes(this.#unit(unit), () => noGrad(() => run(...entered.args)));
        const shapes = this.#pass?.shapeOf(recording?.mute(elsewhere) ?? elsewhere());
        if (this.#pass?.isAtItsEnd) recording?.unmute();
        return shapes as never;
      }
      recording?.unmute();
      if (this.#tape !== undefined && gradEnabled()) {
        const recorded = this.#record(this.#tape, unit, run, entered.args);
        this.#pass?.leave(recorded);
        return recorded as never;
      }
      // Passes without recording disable gradients.
      if (this.#tape === undefined && gradEnabled()) throw calledOutside();
      this.#gathers.need(unit);
      const issue = () => run(...entered.args);
      const result =
        this.#programs === undefined ? issue() : this.#programs.compute(unit, entered.args, issue);
      this.#gathers.release(unit);
      this.#pass?.leave(result);
      return result as never;
    });
  }

  /** Calls a block on the tape, with its parts to recompute. */
  #record(
    tape: BlockTape,
    unit: number,
    run: (...args: unknown[]) => unknown,
    args: readonly unknown[],
  ): unknown {
    const { recompute, name } = this.#unit(unit);
    if (typeof recompute === "boolean") return tape.call(unit, run, args, { recompute });
    return this.#parts.within(name, (parts) => tape.call(unit, run, args, { recompute: false, parts }));
  }

  #unit(unit: number): BlockUnit {
    return this.#plan.units[unit] as BlockUnit;
  }
}

function calledOutside(): TroupeError {
  return new TroupeError("LOOP_ORDER", {
    where: "loop",
    expected: "the model to be called in rank.forward, rank.trainStep or rank.evaluate",
    got: "a call outside of them",
    hint: "its parameters are not gathered there",
  });
}
