import { describe, expect, it } from "vitest";
import { RunControl } from "../../../src/actors/engine/conductor/run-control.ts";
import { Inspections } from "../../../src/actors/inspect/inspections.ts";
import type { CheckpointerProtocol } from "../../../src/actors/protocols/checkpointer.ts";
import type { DeclaredModel, RankStepped } from "../../../src/actors/protocols/rank.ts";
import type { RankPlan } from "../../../src/actors/protocols/rank-plan.ts";
import type { RankGroup } from "../../../src/actors/protocols/run.ts";
import type { StepUpdated } from "../../../src/actors/protocols/shard.ts";
import { abandoned } from "../../../src/actors/state/saving/part-collection.ts";
import { leadThroughRestarts } from "../../../src/actors/trainer/recovery/lead.ts";
import { startFromSeed } from "../../../src/actors/trainer/resume/start.ts";
import { TroupeError } from "../../../src/errors/index.ts";
import { DEFAULT_RULES } from "../../../src/job/anomalies/index.ts";
import type { TroupeEventBody } from "../../../src/job/events/index.ts";
import type { ActorRef } from "../../../src/runtime/index.ts";

type SupervisedRanks = Parameters<typeof leadThroughRestarts>[0];

const steps = 2;
const held = { shape: [1], split: undefined, begin: 0, numel: 1 };
const model: DeclaredModel = {
  layouts: [],
  saved: [{ sizeBytes: 4, entries: [{ kind: "master", parameter: "weight", shape: [1], held }] }],
  parameters: ["weight"],
  numParameters: 1,
  modelConfig: undefined,
};
const stepped: RankStepped = {
  lossesNats: [2],
  learningRate: 0.1,
  namedLosses: [],
  numSamples: 1,
  numTokens: 8,
  durationMs: 1,
  waits: { exposedMs: 0, gatherMs: 0, dataMs: 0 },
  recorded: [],
  metrics: [],
};
const updated: StepUpdated = {
  gradientNorm: 1,
  skipped: false,
  finding: undefined,
  lossScale: undefined,
  reduceMs: 0,
  updateMs: 0,
  inspected: [],
  inspectedUpdates: [],
  histograms: [],
  held: undefined,
};
/** Answers of ranks and shards by question; they answer any other with undefined, and never ask for a save of their own. */
const answers: Readonly<Record<string, unknown>> = {
  join: { store: undefined },
  declare: model,
  step: stepped,
  finish: updated,
  wanted: new Promise<never>(() => {}),
};

/** An actor that answers every question at once, for as long as it lives. */
function actor<P>(
  answer: (kind: string) => unknown,
  options: { readonly isAlive?: () => boolean; readonly hear?: (kind: string) => void } = {},
): ActorRef<P> {
  const { isAlive = () => true, hear = () => {} } = options;
  const self = {
    tell: (kind: string) => hear(kind),
    async ask(kind: string) {
      if (isAlive()) return answer(kind);
      throw new TroupeError("ACTOR_DOWN", {
        where: "test",
        expected: "an actor that lives",
        got: "one that has ended",
      });
    },
    pinned: () => self,
  };
  return self as unknown as ActorRef<P>;
}

/** A rank and its shard that do all that is asked of them, in two generations; the second begins when the test says so. */
class Ranks {
  generation = 0;
  readonly #second = Promise.withResolvers<undefined>();

  get group(): RankGroup {
    const { generation } = this;
    const member = <P>() =>
      actor<P>((kind) => answers[kind], { isAlive: () => generation === this.generation });
    return { ranks: [member()], shards: [member()], feeder: member(), writers: [] };
  }

  generationAfter(generation: number): Promise<undefined> {
    return generation === 0 ? this.#second.promise : new Promise(() => {});
  }

  liveAnew(): void {
    this.generation = 1;
    this.#second.resolve(undefined);
  }

  giveUp(cause: Error): void {
    this.#second.reject(cause);
  }

  madeStep(): void {}
  arePrepared(): void {}
  forgiveRestarts(): void {}
}

/** A run that saves each step, and whose first save is not answered in its generation: the step after it waits for that. */
class StuckRun {
  readonly ranks = new Ranks();
  readonly events: TroupeEventBody[] = [];
  readonly result: ReturnType<typeof leadThroughRestarts>;
  /** Resolves once the save is ordered: from then on nothing is asked of any rank. */
  readonly stuck: Promise<void>;

  constructor() {
    const ordered = Promise.withResolvers<void>();
    this.stuck = ordered.promise;
    const neverFed = Promise.withResolvers<never>();
    const start = startFromSeed(1);
    const answer = (kind: string) => {
      if (kind === "kept") return { state: undefined };
      if (this.ranks.generation > 0) return { path: "somewhere", sizeBytes: 4, durationMs: 1, blockedMs: 0 };
      ordered.resolve();
      return neverFed.promise;
    };
    // As the checkpointer does: what an earlier generation has begun is given up when the next begins.
    const hear = (kind: string) => {
      if (kind === "begin" && this.ranks.generation > 0) neverFed.reject(abandoned(1));
    };
    const checkpointer = actor<CheckpointerProtocol>(answer, { hear });
    const plan = {
      schedule: {
        steps,
        evaluateEverySteps: Number.POSITIVE_INFINITY,
        evaluation: [],
        saving: {
          everySteps: 1,
          inMemoryEverySteps: undefined,
          whenBusy: "wait",
          maxStagedBytes: Number.POSITIVE_INFINITY,
        },
        memoryEverySteps: Number.POSITIVE_INFINITY,
        predicts: false,
        histogramsEverySteps: Number.POSITIVE_INFINITY,
        sample: false,
      } as const,
      ranks: {
        job: { config: {}, facts: {} },
        layout: { mesh: { pp: 1, dp: 1, tp: 1, ep: 1 } },
        execution: { deadlineMs: 1_000 },
        training: { seed: 1, sampler: { step: 0, numSamples: 0, batchSize: 4, skips: [] } },
        anomalies: DEFAULT_RULES,
        initial: start.initial,
      } as unknown as RankPlan,
    };
    this.result = leadThroughRestarts(this.ranks as unknown as SupervisedRanks, {
      plan,
      start,
      about: () => ({}),
      onPrepared: async () => {},
      resume: undefined,
      checkpointer,
      isSpread: false,
      inspections: new Inspections(),
      control: new RunControl(),
      emit: (event) => this.events.push(event),
      onStep: () => {},
      load: () => Promise.reject(new Error("nothing is loaded")),
      hold: () => Promise.reject(new Error("nothing is taken")),
      residentBytes: () => 0,
      begin: (_kind, body) => body(),
    });
    this.result.catch(() => {});
  }

  /** Reports, such as "saved 2". */
  get reported(): string[] {
    return this.events.flatMap((event) =>
      "step" in event ? [`${event.kind.split(".")[1]} ${event.step}`] : [],
    );
  }
}

/** As many event-loop turns as all work takes that waits for no message. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
}

describe("a generation of the rank group that ends while its conductor asks nothing of it", () => {
  it("a dead generation is replaced at once, though the conductor waits for a message that never comes", async () => {
    const run = new StuckRun();
    await run.stuck;
    await turns();
    expect(run.reported).toEqual(["started 1", "finished 1"]);
    run.ranks.liveAnew();
    await turns();
    // The only further report of the first generation is that its save was abandoned.
    expect(run.reported.slice(2)).toEqual([
      ...["failed 1", "restored 0"],
      ...["started 1", "finished 1", "saved 1"],
      ...["started 2", "finished 2", "saved 2"],
    ]);
    expect(await run.result).toMatchObject({ steps, lossNats: 2, saveError: undefined });
  });

  it("a group that is given up ends the run with the first cause, and fails each save that had begun", async () => {
    const run = new StuckRun();
    await run.stuck;
    run.ranks.giveUp(
      new TroupeError("ACTOR_DOWN", {
        where: "test",
        expected: "rank-0 to live",
        got: "a fall",
        hint: "mend it",
      }),
    );
    await turns();
    expect(run.reported).toEqual(["started 1", "finished 1", "failed 1"]);
    await expect(run.result).rejects.toThrow("expected rank-0 to live, got a fall");
  });
});
