import type { JsonObject, TrainerState } from "../checkpoint/index.ts";
import { type ErrorReport, reportError, type TroupeEventBody } from "../events/index.ts";
import type { ActorRef } from "../runtime/index.ts";
import type { CheckpointerProtocol } from "./checkpointer.ts";
import type { BatchRequest } from "./feeder.ts";
import type { PreparedModel, RankPlan, RankProtocol, RankStepped } from "./rank.ts";
import type { ShardProtocol, StepUpdated } from "./shard.ts";

/** The actors of one life of the rank group, in rank order. */
export interface RankGroup {
  readonly ranks: readonly ActorRef<RankProtocol>[];
  readonly shards: readonly ActorRef<ShardProtocol>[];
}

/** What the conductor follows: what happens after which step. Plain data. */
export interface Score {
  readonly steps: number;
  /** Infinity: never. */
  readonly evaluateEverySteps: number;
  /** Held-out batches of one evaluation, dealt to the ranks in turn. */
  readonly evaluation: readonly BatchRequest[];
  /** Infinity: only at the end. */
  readonly saveEverySteps: number;
  readonly sample: boolean;
}

/** What one run came to. */
export interface RunResult {
  readonly steps: number;
  /** Loss of the last step, mean over all ranks; NaN where no step was made. */
  readonly lossNats: number;
  /** Last held-out loss, where there was an evaluation. */
  readonly evaluationLossNats: number | undefined;
  readonly sample: string | undefined;
  /** Why the last save failed, if it did: the run's end is not on the disk then. */
  readonly saveError: ErrorReport | undefined;
}

/** What the conductor works with. */
export interface ConductorOptions {
  readonly score: Score;
  readonly plan: RankPlan;
  readonly checkpointer: ActorRef<CheckpointerProtocol> | undefined;
  /** What a checkpoint keeps beside tensors, after `step` updates. */
  readonly stateAt: (step: number) => TrainerState;
  readonly emit: (event: TroupeEventBody) => void;
}

/** Steps granted to the ranks before the first of them is done: hides the conductor's latency. */
const STEPS_AHEAD = 3;

/**
 * Owns the step clock of a run: grants steps to the ranks, a few ahead, and tells what came of them in order. What
 * happens between two steps (evaluation, snapshots) is asked for in the order in which it is to happen, so that every
 * rank does the same at the same place.
 */
export class Conductor {
  readonly #options: ConductorOptions;
  readonly #group: RankGroup;
  readonly #inFlight: Promise<void>[] = [];
  #prepared: PreparedModel | undefined;
  #saving: Promise<void> = Promise.resolve();
  #lossNats = Number.NaN;
  #evaluationLossNats: number | undefined;
  #saveError: ErrorReport | undefined;

  /** One conductor leads one life of the group; after a restart another one takes over. */
  constructor(group: RankGroup, options: ConductorOptions) {
    this.#group = group;
    this.#options = options;
  }

  /**
   * Prepares the group and leads it from the plan's initial state to the last step.
   * @throws what a rank or shard threw, or `ActorDown` when one is gone; everything asked for has settled then
   */
  async lead(): Promise<RunResult> {
    const { score, plan } = this.#options;
    this.#prepared = await this.#prepare();
    for (let step = plan.initial.step; step < score.steps; step++) {
      const save = this.#savesAfter(step);
      if (save) await this.#saving;
      await this.#follow(this.#step(step, save));
      if ((step + 1) % score.evaluateEverySteps === 0 || step + 1 === score.steps)
        await this.#follow(this.#evaluate(step + 1));
    }
    await this.#settle();
    const sample = score.sample ? await this.#sample(score.steps) : undefined;
    await this.#saving;
    return {
      steps: score.steps,
      lossNats: this.#lossNats,
      evaluationLossNats: this.#evaluationLossNats,
      sample,
      saveError: this.#saveError,
    };
  }

  async #prepare(): Promise<PreparedModel> {
    const { plan } = this.#options;
    const { ranks, shards } = this.#group;
    const deadline = { deadlineMs: plan.deadlineMs };
    await Promise.all(shards.map((shard) => shard.ask("join", { peers: shards, ranks }, deadline)));
    const models = await Promise.all(ranks.map((rank) => rank.ask("prepare", plan, deadline)));
    return models[0] as PreparedModel;
  }

  /** Keeps at most {@link STEPS_AHEAD} pieces of work granted and not done. */
  async #follow(work: Promise<void>): Promise<void> {
    // Awaited in its turn; until then a failure of it is not unhandled.
    work.catch(() => {});
    this.#inFlight.push(work);
    if (this.#inFlight.length >= STEPS_AHEAD) await this.#inFlight.shift();
  }

  async #settle(): Promise<void> {
    for (const work of this.#inFlight.splice(0)) await work;
  }

  #savesAfter(step: number): boolean {
    const { checkpointer, score } = this.#options;
    if (checkpointer === undefined) return false;
    return (step + 1) % score.saveEverySteps === 0 || step + 1 === score.steps;
  }

  async #step(step: number, save: boolean): Promise<void> {
    const { plan, emit, checkpointer } = this.#options;
    const deadline = { deadlineMs: plan.deadlineMs };
    const before = [...this.#inFlight];
    if (save && checkpointer !== undefined) this.#saving = this.#save(step + 1, checkpointer);
    const snapshotTo = save ? checkpointer : undefined;
    const message = snapshotTo === undefined ? { step } : { step, snapshotTo };
    const [ranks, shards] = await Promise.all([
      Promise.all(this.#group.ranks.map((rank) => rank.ask("step", message, deadline))),
      Promise.all(this.#group.shards.map((shard) => shard.ask("finish", { step }, deadline))),
    ]);
    await Promise.all(before);
    this.#lossNats = meanLoss(ranks);
    emit({ kind: "step.finished", step: step + 1, lossNats: this.#lossNats, ...measured(ranks, shards) });
  }

  async #evaluate(step: number): Promise<void> {
    const { score, plan, emit } = this.#options;
    if (score.evaluation.length === 0) return;
    const before = [...this.#inFlight];
    const message = { step, requests: score.evaluation };
    const shares = await Promise.all(
      this.#group.ranks.map((rank) => rank.ask("evaluate", message, { deadlineMs: plan.deadlineMs })),
    );
    await Promise.all(before);
    const losses = shares.flatMap((share) => share.lossesNats);
    const numTokens = shares.reduce((sum, share) => sum + share.numTokens, 0);
    this.#evaluationLossNats = losses.reduce((sum, loss) => sum + loss, 0) / losses.length;
    emit({ kind: "evaluation.finished", step, lossNats: this.#evaluationLossNats, numTokens });
  }

  /** Runs beside the steps; a save that fails is told and training goes on. */
  async #save(step: number, checkpointer: ActorRef<CheckpointerProtocol>): Promise<void> {
    const { emit, plan, stateAt } = this.#options;
    const { layouts, modelConfig } = this.#prepared as PreparedModel;
    emit({ kind: "checkpoint.started", step });
    const order = {
      layouts,
      numRanks: this.#group.ranks.length,
      modelConfig: (modelConfig ?? {}) as JsonObject,
      state: stateAt(step),
    };
    try {
      const saved = await checkpointer.ask("save", order, { deadlineMs: plan.deadlineMs });
      this.#saveError = undefined;
      emit({ kind: "checkpoint.saved", step, ...saved });
    } catch (error) {
      this.#saveError = reportError(error);
      emit({ kind: "checkpoint.failed", step, error: this.#saveError });
    }
  }

  async #sample(step: number): Promise<string> {
    const { plan, emit } = this.#options;
    const answers = await Promise.all(
      this.#group.ranks.map((rank) => rank.ask("sample", { step }, { deadlineMs: plan.deadlineMs })),
    );
    const text = answers[0]?.text ?? "";
    emit({ kind: "text.generated", step, text });
    return text;
  }
}

/** Mean over micro-batches, rank after rank: the order in which one rank would accumulate them. */
function meanLoss(ranks: readonly RankStepped[]): number {
  const losses = ranks.flatMap((rank) => rank.lossesNats);
  return losses.reduce((sum, loss) => sum + loss, 0) / losses.length;
}

function measured(ranks: readonly RankStepped[], shards: readonly StepUpdated[]) {
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  const durationMs = Math.max(...ranks.map((rank) => rank.durationMs));
  const numTokens = sum(ranks.map((rank) => rank.numTokens));
  const exposedMs = sum(ranks.map(({ waits }) => waits.exposedMs));
  const communicationMs =
    sum(ranks.map(({ waits }) => waits.gatherMs)) + sum(shards.map((shard) => shard.busyMs));
  return {
    learningRate: ranks[0]?.learningRate ?? 0,
    gradientNorm: shards[0]?.gradientNorm ?? Number.NaN,
    numTokens,
    tokensPerSecond: (numTokens * 1000) / durationMs,
    durationMs,
    overlap: communicationMs === 0 ? 1 : Math.max(0, 1 - exposedMs / communicationMs),
    exposedMs: exposedMs / ranks.length,
    residentBytes: process.memoryUsage.rss(),
  };
}
