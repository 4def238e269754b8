import type { Worker } from "node:worker_threads";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { liveRefs } from "../../../src/compute/tensor/index.ts";
import type { RuntimeOptions } from "../../../src/entries/index.ts";
import { Chance } from "../../chaos/chance.ts";
import { ActorThreads } from "../../chaos/faults.ts";
import { Workspace } from "../../fixtures/run-tiny.ts";
import { lossesIn, type Policy, rangeAt, withModel } from "./script.ts";

const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

/** Makes a step. */
function train(model: Policy, step: number): void {
  void model.accumulate("loss", rangeAt(step));
  void model.step({ lr: 1e-2 });
}

/** All that a model says, read without a step in between. */
async function heard(model: Pick<Policy, "call" | "generate" | "evaluate">) {
  const rows = model.call("logProbs", rangeAt(40));
  const texts = model.generate([[40, 41], [42]], { maxNewTokens: 4, seed: 3, temperature: 1 });
  const losses = model.evaluate();
  const { logProbs } = (await rows).rows;
  return { logProbs: [...logProbs.to("float32").toTypedArray()], texts: await texts, losses: await losses };
}

/** Makes a copy that has ranks of its own, as it does from when the policy moves on and it is read. */
async function copyApart(policy: Policy) {
  train(policy, 0);
  const frozen = await policy.frozenCopy();
  train(policy, 1);
  await heard(frozen);
  return frozen;
}

/** Ends actors' threads. */
class Strikes implements Disposable {
  readonly #threads = new ActorThreads();

  /** Ends one of these actors, which must be there. */
  end(who: RegExp): void {
    expect(this.#threads.endOne(new Chance(1), who)).toBeDefined();
  }

  [Symbol.dispose](): void {
    this.#threads[Symbol.dispose]();
  }
}

describe("a frozen copy", () => {
  const layouts: readonly (readonly [string, RuntimeOptions, Readonly<Record<string, unknown>>])[] = [
    ["of replicas in bfloat16", { ranks: 2, zero: 2, precision: "bf16" }, {}],
    ["of ranks that split layers", { ranks: 2, tp: 2 }, {}],
    ["of stages", { ranks: 2, pp: 2 }, { accumulation: 2 }],
    ["of processes", { ranks: 2, zero: 3, placement: "process" }, {}],
    ["of a model that saves", { ranks: 1, checkpoint: { dir: workspace.path("saved") } }, {}],
  ];

  it.each(layouts)(
    "says what the policy said, whatever that learns, at no cost of bits: %s",
    async (_, layout, config) => {
      const alone = lossesIn(
        await withModel(workspace, layout, config, async (model) => {
          for (let step = 0; step < 4; step++) train(model, step);
        }),
      );
      const again = { ...layout, ...(layout.checkpoint && { checkpoint: { dir: workspace.path("again") } }) };
      const events = await withModel(workspace, again, config, async (policy) => {
        for (let step = 0; step < 2; step++) train(policy, step);
        const first = await policy.frozenCopy();
        const before = await heard(policy);
        expect(first.isApart).toBe(false);
        expect(await heard(first)).toEqual(before);
        train(policy, 2);
        expect(first.isApart).toBe(true);
        const second = await policy.frozenCopy();
        const later = await heard(second);
        expect(later.logProbs).not.toEqual(before.logProbs);
        expect(await heard(first)).toEqual(before);
        train(policy, 3);
        expect(await heard(second)).toEqual(later);
        await first.close();
        await expect(first.call("logProbs", rangeAt(0))).rejects.toMatchObject({ code: "MODEL_CLOSED" });
        expect(await heard(second)).toEqual(later);
        if (layout.checkpoint !== undefined)
          await expect(second.follow()).rejects.toThrow(
            "[follow] expected copies in memory, got none (inMemoryEverySteps, in the checkpoint of Runtime.spawn)",
          );
        else {
          expect(await second.follow()).toEqual({ step: 4 });
          expect(await heard(second)).toEqual(await heard(policy));
        }
      });
      expect(lossesIn(events.filter(({ model }) => model === undefined))).toEqual(alone);
      const started = events.flatMap((event) => (event.kind === "actor.started" ? [event.actor] : []));
      // It takes what its model knows of job and data.
      expect(started).toContain("frozen-2-feeder");
      expect(started.filter((actor) => actor.endsWith("job-loader"))).toEqual(["job-loader"]);
      expect(liveRefs()).toBe(0);
    },
  );

  it("has the weights that it was made from after its ranks or the policy's have died", async () => {
    using strikes = new Strikes();
    await withModel(workspace, { ranks: 2, zero: 3 }, {}, async (policy) => {
      train(policy, 0);
      const frozen = await policy.frozenCopy();
      const before = await heard(frozen);
      // Before the policy moves, this is its memory.
      strikes.end(/^rank-\d$/);
      expect(await heard(frozen)).toEqual(before);
      train(policy, 1);
      expect(await heard(frozen)).toEqual(before);
      strikes.end(/^frozen-1-(rank|shard)-\d$/);
      expect(await heard(frozen)).toEqual(before);
      strikes.end(/^rank-\d$/);
      strikes.end(/^frozen-1-checkpointer$/);
      expect(await heard(frozen)).toEqual(before);
      strikes.end(/^frozen-1-feeder$/);
      expect(await heard(frozen)).toEqual(before);
    });
  });

  it("has the weights that it took on last after its ranks have died, while it took them on too", async () => {
    using strikes = new Strikes();
    await withModel(workspace, { ranks: 2, zero: 3 }, {}, async (policy) => {
      const frozen = await copyApart(policy);
      train(policy, 2);
      const followed = frozen.follow();
      strikes.end(/^frozen-1-rank-\d$/);
      expect(await followed).toEqual({ step: 3 });
      const later = await heard(policy);
      expect(await heard(frozen)).toEqual(later);
      train(policy, 3);
      strikes.end(/^frozen-1-shard-\d$/);
      expect(await heard(frozen)).toEqual(later);
      strikes.end(/^frozen-1-checkpointer$/);
      strikes.end(/^frozen-1-rank-\d$/);
      expect(await heard(frozen)).toEqual(later);
    });
  });

  it("takes weights on though its checkpointer alone has died", async () => {
    using strikes = new Strikes();
    await withModel(workspace, { ranks: 2, zero: 3 }, {}, async (policy) => {
      const frozen = await copyApart(policy);
      strikes.end(/^frozen-1-checkpointer$/);
      expect(await frozen.follow()).toEqual({ step: 2 });
      expect(await heard(frozen)).toEqual(await heard(policy));
    });
  });

  it("has them however long after its ranks its checkpointer comes back", async () => {
    using strikes = new Strikes();
    await withModel(workspace, { ranks: 2, zero: 3 }, {}, async (policy) => {
      const frozen = await copyApart(policy);
      expect(await frozen.follow()).toEqual({ step: 2 });
      const later = await heard(policy);
      // Each start that fails makes the next one wait longer.
      let numThreads = 0;
      const strike = (worker: Worker) => {
        if (worker.threadName === "frozen-1-checkpointer" && numThreads++ < 3) void worker.terminate();
      };
      process.on("worker", strike);
      onTestFinished(() => void process.off("worker", strike));
      strikes.end(/^frozen-1-checkpointer$/);
      strikes.end(/^frozen-1-rank-\d$/);
      expect(await heard(frozen)).toEqual(later);
      expect(numThreads).toBe(4);
    });
  });

  it("follows the next step too after it followed beside a load that was refused", async () => {
    await withModel(workspace, { ranks: 1 }, {}, async (policy) => {
      train(policy, 0);
      const frozen = await policy.frozenCopy();
      train(policy, 1);
      const missing = policy.load(workspace.path("nothing"));
      const followed = frozen.follow();
      await expect(missing).rejects.toMatchObject({ code: "CHECKPOINT_MISSING" });
      expect(await followed).toEqual({ step: 2 });
      train(policy, 2);
      expect(await frozen.follow()).toEqual({ step: 3 });
      expect(await heard(frozen)).toEqual(await heard(policy));
    });
  });

  it("writes on ranks of its own what the policy would, while that trains on", async () => {
    // The last digits of log-probabilities depend on how many texts a rank writes together.
    const texts = async (model: Pick<Policy, "generate">, round: number) =>
      (
        await model.generate([[40, 41], [42]], { samples: 2, maxNewTokens: 4, seed: round, temperature: 1 })
      ).map(({ sequence }) => sequence);
    const layout: RuntimeOptions = { ranks: 2, zero: 3 };
    const rounds = [0, 1, 2, 3];
    const ofPolicy: unknown[] = [];
    await withModel(workspace, layout, {}, async (policy) => {
      for (const round of rounds) {
        train(policy, round);
        ofPolicy.push(await texts(policy, round));
      }
    });
    await withModel(workspace, layout, {}, async (policy, runtime) => {
      // #region writer
      const writer = await policy.frozenCopy({ ranks: 1 });
      // #endregion
      const written: Promise<unknown>[] = [];
      for (const round of rounds) {
        train(policy, round);
        // #region follow
        void writer.follow();
        written.push(texts(writer, round));
        // #endregion
      }
      expect(await Promise.all(written)).toEqual(ofPolicy);
      const actors = runtime.inspect().map(({ actor }) => actor);
      expect(actors.filter((name) => /^frozen-1-rank/.test(name))).toEqual(["frozen-1-rank-0"]);
    });
    expect(liveRefs()).toBe(0);
  });

  it("ends with its policy, and is refused after it", async () => {
    await withModel(workspace, { ranks: 1 }, {}, async (policy) => {
      const frozen = await policy.frozenCopy();
      await policy.close();
      await expect(frozen.call("logProbs", rangeAt(0))).rejects.toThrow(
        "[model] expected a live model, got one that is closed (open it again)",
      );
      await expect(policy.frozenCopy()).rejects.toMatchObject({ code: "MODEL_CLOSED" });
    });
  });
});
