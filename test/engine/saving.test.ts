import { describe, expect, it } from "vitest";
import { Saving } from "../../src/actors/engine/conductor/saving.ts";
import type { CheckpointerProtocol, SaveOrder } from "../../src/actors/protocols/checkpointer.ts";
import type { DeclaredModel } from "../../src/actors/protocols/rank.ts";
import type { SavingRules } from "../../src/actors/protocols/run.ts";
import type { TroupeEventBody } from "../../src/job/events/index.ts";
import type { ActorRef } from "../../src/runtime/index.ts";

const rules: SavingRules = {
  everySteps: 2,
  inMemoryEverySteps: undefined,
  whenBusy: "wait",
  maxStagedBytes: Number.POSITIVE_INFINITY,
};

const entry = { kind: "master", parameter: "weight", shape: [3] };

/** Two ranks with a part of 100 bytes each. */
const models = [0, 1].map(() => ({
  saved: [{ sizeBytes: 100, entries: [entry] }],
})) as unknown as DeclaredModel[];

/** The checkpointer as it lives when it is asked for. */
function incarnation(ask: (at: unknown, order: SaveOrder) => Promise<unknown>): object {
  const self: object = { ask: (_kind: string, order: SaveOrder) => ask(self, order) };
  return self;
}

/** A run whose saves end when the test says so. */
class SlowDisk {
  readonly events: TroupeEventBody[] = [];
  /** Messages to the script that steers the run. */
  readonly heard: string[] = [];
  readonly orders: SaveOrder[] = [];
  /** Names given to saved states. */
  readonly names: unknown[] = [];
  /** The incarnation that a save was ordered at, of each. */
  readonly orderedAt: unknown[] = [];
  readonly saving: Saving;
  readonly #pending: PromiseWithResolvers<unknown>[] = [];

  constructor(changed: Partial<SavingRules> = {}, reviewed = async (_step: number) => {}) {
    const { orderedAt } = this;
    const ask = (at: unknown, order: SaveOrder) => {
      orderedAt.push(at);
      this.orders.push(order);
      return this.#pend();
    };
    this.saving = new Saving(models, {
      rules: { ...rules, ...changed },
      checkpointer: {
        pinned: () => incarnation(ask),
        ask: (_kind: string, name: unknown) => {
          this.names.push(name);
          return this.#pend();
        },
      } as unknown as ActorRef<CheckpointerProtocol>,
      writers: [],
      generation: 0,
      deadlineMs: 1000,
      stateAt: (step) => ({ step, seed: 1, samplesConsumed: 4 * step, job: null, tokenizer: null }),
      reviewed,
      emit: (event) => this.events.push(event),
      listener: {
        saveBegun: (step) => this.heard.push(`begun ${step}`),
        saved: ({ step, path }) => this.heard.push(`${path === undefined ? "copied" : "saved"} ${step}`),
        saveFailed: (step) => this.heard.push(`failed ${step}`),
      },
    });
  }

  #pend(): Promise<unknown> {
    const answer = Promise.withResolvers<unknown>();
    this.#pending.push(answer);
    return answer.promise;
  }

  /** The save under way succeeds. */
  async end(): Promise<void> {
    const { path } = { path: this.orders.at(-1)?.write ? "somewhere" : undefined };
    this.#pending.shift()?.resolve({ path, sizeBytes: 200, durationMs: 5 });
    await new Promise(setImmediate);
  }

  async fail(message: string): Promise<void> {
    this.#pending.shift()?.reject(new Error(message));
    await new Promise(setImmediate);
  }

  /** Reports, such as "started 2". */
  get reported(): string[] {
    return this.events.map((event) => `${event.kind.split(".")[1]} ${(event as { step: number }).step}`);
  }
}

describe("saving", () => {
  it("falls due by the rules, and after the last step", async () => {
    const disk = new SlowDisk();
    const begun: number[] = [];
    for (let step = 1; step <= 5; step++) {
      if ((await disk.saving.begin(step, { isLast: step === 5 })) !== undefined) begun.push(step);
      await disk.end();
    }
    expect(begun).toEqual([2, 4, 5]);
    expect(disk.reported).toEqual(["started 2", "saved 2", "started 4", "saved 4", "started 5", "saved 5"]);
    expect(disk.heard).toEqual(["begun 2", "saved 2", "begun 4", "saved 4", "begun 5", "saved 5"]);
  });

  it("is ordered at the incarnation of the checkpointer that is fed", async () => {
    const disk = new SlowDisk();
    const fed: unknown[] = [];
    for (const step of [2, 4]) {
      fed.push((await disk.saving.begin(step))?.receivers?.[0]);
      await disk.end();
    }
    expect(disk.orderedAt[0]).toBe(fed[0]);
    expect(disk.orderedAt[1]).toBe(fed[1]);
    expect(fed[1]).not.toBe(fed[0]);
  });

  it("a save declares its bytes and its number of parts before anything is copied", async () => {
    const disk = new SlowDisk();
    await disk.saving.begin(2);
    expect(disk.events).toEqual([{ kind: "checkpoint.started", step: 2, stagedBytes: 200, waitedMs: 0 }]);
    expect(disk.orders[0]).toMatchObject({ numParts: 2, entries: [entry], write: true, keep: false });
  });

  it("copies a state again that is on the disk already, where its copy in memory is to be read and is lost", async () => {
    const disk = new SlowDisk({ inMemoryEverySteps: 2 });
    const reasons = { isRead: true, isPresent: true };
    const saved = await disk.saving.begin(2);
    const underWay = await disk.saving.begin(2, reasons);
    expect(underWay).toEqual({ ...saved, receivers: undefined });
    await disk.end();
    expect((await disk.saving.begin(2, reasons))?.receivers).toHaveLength(2);
    await disk.end();
    expect(disk.orders.map(({ write, keep }) => [write, keep])).toEqual([
      [true, true],
      [false, true],
    ]);
    expect(disk.reported).toEqual(["started 2", "saved 2", "copied 2"]);
  });

  it("waits for the save before it, and tells how long", async () => {
    const disk = new SlowDisk();
    await disk.saving.begin(2);
    let begun = false;
    const next = disk.saving.begin(4).then(() => {
      begun = true;
    });
    await new Promise(setImmediate);
    expect(begun).toBe(false);
    await disk.end();
    await next;
    expect(disk.reported).toEqual(["started 2", "saved 2", "started 4"]);
    expect(disk.events[2]).toMatchObject({ waitedMs: expect.toSatisfy((ms: number) => ms > 0) });
  });

  it("a save is skipped and counted while another is under way, if the rule says so, but never after the last step", async () => {
    const disk = new SlowDisk({ whenBusy: "skip" });
    await disk.saving.begin(2);
    expect(await disk.saving.begin(4)).toBeUndefined();
    expect(await disk.saving.begin(6)).toBeUndefined();
    const last = disk.saving.begin(7, { isLast: true });
    await disk.end();
    expect(await last).toBeDefined();
    expect(disk.reported).toEqual(["started 2", "skipped 4", "skipped 6", "saved 2", "started 7"]);
    expect(disk.events[2]).toMatchObject({ numSkipped: 2, reason: "step 2 is still being saved" });
  });

  it("begins nothing more once its generation is over, though that waited for a save to end", async () => {
    const disk = new SlowDisk();
    await disk.saving.begin(2);
    const next = disk.saving.begin(4);
    disk.saving.end();
    await disk.fail("given up");
    expect(await next).toBeUndefined();
    expect(disk.reported).toEqual(["started 2", "failed 2"]);
    expect(disk.heard).toEqual(["begun 2", "failed 2"]);
  });

  it("a save reads its data beside tensors only after the step was reviewed", async () => {
    const made = Promise.withResolvers<void>();
    const disk = new SlowDisk({}, () => made.promise);
    await disk.saving.begin(2);
    await new Promise(setImmediate);
    expect(disk.orders).toEqual([]);
    made.resolve();
    await new Promise(setImmediate);
    expect(disk.orders).toMatchObject([{ state: { step: 2 } }]);
  });

  it("a save that fails is reported, and the next one succeeds", async () => {
    const disk = new SlowDisk();
    await disk.saving.begin(2);
    await disk.fail("no room");
    expect(disk.saving.error).toMatchObject({ message: "no room" });
    await disk.saving.begin(4);
    await disk.end();
    expect(disk.saving.error).toBeUndefined();
    expect(disk.reported).toEqual(["started 2", "failed 2", "started 4", "saved 4"]);
  });

  it("a save that fails can be asked for again at its step", async () => {
    const disk = new SlowDisk();
    await disk.saving.begin(2);
    await disk.fail("no room");
    const again = await disk.saving.begin(2);
    expect(again?.receivers).toHaveLength(2);
    await disk.end();
    expect(await again?.outcome).toMatchObject({ kind: "saved" });
    expect(disk.reported).toEqual(["started 2", "failed 2", "started 2", "saved 2"]);
  });

  it("gives a state each name that it is asked for, and answers once it has it or cannot have it", async () => {
    const made = Promise.withResolvers<void>();
    const disk = new SlowDisk({}, () => made.promise);
    const ask = async (as: string) => (await disk.saving.begin(2, { isAsked: true, named: { as } }))?.outcome;
    const [first, second] = [ask("a"), ask("b")];
    await new Promise(setImmediate);
    made.resolve();
    await new Promise(setImmediate);
    expect(disk.orders).toMatchObject([{ named: { as: "a" } }]);
    await disk.end();
    expect(await first).toMatchObject({ kind: "saved" });
    const third = ask("c");
    await new Promise(setImmediate);
    expect(disk.names).toMatchObject([{ step: 2, named: { as: "b" } }, { named: { as: "c" } }]);
    await disk.end();
    await disk.fail("no room");
    expect(await second).toMatchObject({ kind: "saved" });
    expect(await third).toMatchObject({ kind: "failed", error: { message: "no room" } });
  });

  it("keeps copies in memory between those that go to the disk", async () => {
    const disk = new SlowDisk({ everySteps: 4, inMemoryEverySteps: 2 });
    for (const step of [2, 4]) {
      await disk.saving.begin(step);
      await disk.end();
    }
    expect(disk.reported).toEqual(["copied 2", "started 4", "saved 4"]);
    expect(disk.orders.map(({ write, keep }) => [write, keep])).toEqual([
      [false, true],
      [true, true],
    ]);
  });

  it("a save refuses to copy more than its limit", () => {
    expect(() => new SlowDisk({ maxStagedBytes: 199 })).toThrow(
      expect.objectContaining({ code: "CHECKPOINT_STAGING" }),
    );
  });
});
