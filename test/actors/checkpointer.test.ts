import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { Saving } from "../../src/actors/engine/conductor/saving.ts";
import { actorModules } from "../../src/actors/index.ts";
import { preloads } from "../../src/actors/preload/index.ts";
import type { CheckpointerInit, CheckpointerProtocol } from "../../src/actors/protocols/checkpointer.ts";
import type { DeclaredModel } from "../../src/actors/protocols/rank.ts";
import type { SavePart, SnapshotProtocol } from "../../src/actors/protocols/snapshot.ts";
import { liveRefs } from "../../src/compute/tensor/index.ts";
import { attach, memory } from "../../src/entries/tensor.ts";
import type { TroupeEventBody } from "../../src/job/events/index.ts";
import type { ActorRef } from "../../src/runtime/index.ts";
import { fewParameters, SpreadState } from "../fixtures/spread-state.ts";
import { type EventLog, startSystem } from "../runtime/start-system.ts";

const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
afterAll(() => rmSync(folder, { recursive: true }));

const deadlineMs = 20_000;
const owner = "reader#1";

/** A checkpointer on a thread of its own, started again when it fails. */
class Saver {
  readonly checkpointer: ActorRef<CheckpointerProtocol>;
  readonly log: EventLog;

  private constructor(checkpointer: ActorRef<CheckpointerProtocol>, log: EventLog) {
    this.checkpointer = checkpointer;
    this.log = log;
  }

  static async start(directory: string | undefined): Promise<Saver> {
    const { system, log } = startSystem({ preload: preloads.oneHost });
    // As the run does, which locks it too.
    if (directory !== undefined) mkdirSync(directory, { recursive: true });
    const init = (): CheckpointerInit => ({ directory, hold: undefined });
    const supervisor = await system.supervise({
      name: "saving",
      strategy: "one_for_one",
      children: [{ name: "checkpointer", module: actorModules.checkpointer, init }],
    });
    return new Saver(supervisor.ref("checkpointer"), log);
  }

  /** Asks for a save, whose parts are sent later. */
  save(spread: Pick<SpreadState, "plan">, step: number, generation = 0, keep = false) {
    const state = { step, seed: 1, samplesConsumed: 0, job: null, tokenizer: null };
    const order = { ...spread.plan, generation, texts: { config: {} }, state, write: true, keep };
    const saved = this.checkpointer.ask("save", order, { deadlineMs });
    saved.catch(() => {});
    return saved;
  }

  tell(parts: readonly SavePart[], generation: number, step: number): void {
    for (const part of parts) this.checkpointer.tell("part", part);
    this.checkpointer.tell("progress", { generation, step, progress: { numUpdates: step } });
  }
}

const broken = { generation: 0, step: 1, state: null } as unknown as SavePart;

describe("the checkpointer", () => {
  it("that fails in the middle of a save fails that save alone; started again, it saves the next, and nothing is left", async () => {
    const directory = join(folder, "fails");
    const saver = await Saver.start(directory);
    using spread = new SpreadState(fewParameters, { tp: 2, dp: 2, zero: 3 }).number();
    const first = saver.save(spread, 1);
    const [part, ...others] = spread.parts(0, 1) as [SavePart, ...SavePart[]];
    saver.checkpointer.tell("part", part);
    saver.checkpointer.tell("part", broken);
    await expect(first).rejects.toMatchObject({ code: "ACTOR_DOWN" });
    await saver.log.until(({ kind }) => kind === "actor.restarted");
    // Parts on their way to the ended generation are never delivered.
    for (const { state } of others) for (const { ref } of state) attach(ref).dispose();
    const second = saver.save(spread, 2);
    saver.tell(spread.parts(0, 2), 0, 2);
    expect((await second).path).toBe(join(directory, "step-000002"));
    expect(readdirSync(directory)).toEqual(["latest", "step-000002"]);
    expect(liveRefs()).toBe(0);
  });

  it("a checkpointer that ends between the parts of a save and its order fails that save, whose parts the next generation never gets", async () => {
    const directory = join(folder, "between");
    const saver = await Saver.start(directory);
    using spread = new SpreadState(fewParameters, { tp: 1, dp: 1, zero: 0 }).number();
    const { stagedBytes: sizeBytes, entries } = spread.plan;
    const models = [{ saved: [{ sizeBytes, entries }] }] as unknown as DeclaredModel[];
    const judged = Promise.withResolvers<void>();
    const events: TroupeEventBody[] = [];
    const saving = new Saving(models, {
      rules: {
        everySteps: 1,
        inMemoryEverySteps: undefined,
        whenBusy: "wait",
        maxStagedBytes: Number.POSITIVE_INFINITY,
      },
      checkpointer: saver.checkpointer,
      writers: [],
      generation: 0,
      deadlineMs,
      stateAt: (step) => ({ step, seed: 1, samplesConsumed: 0, job: null, tokenizer: null }),
      reviewed: (step) => (step === 1 ? judged.promise : Promise.resolve()),
      emit: (event) => events.push(event),
      listener: { saveBegun() {}, saved() {}, saveFailed() {} },
    });
    const feed = (writer: ActorRef<SnapshotProtocol> | undefined, step: number) => {
      for (const part of spread.parts(0, step)) writer?.tell("part", part);
      writer?.tell("progress", { generation: 0, step, progress: { numUpdates: step } });
    };
    const writer = (await saving.begin(1))?.receivers?.[0];
    feed(writer, 1);
    writer?.tell("part", broken);
    await saver.log.until(({ kind }) => kind === "actor.restarted");
    judged.resolve();
    await saving.settle();
    feed((await saving.begin(2, { isLast: true }))?.receivers?.[0], 2);
    await saving.settle();
    expect(events).toMatchObject([
      { kind: "checkpoint.started", step: 1 },
      { kind: "checkpoint.failed", step: 1, error: { code: "ACTOR_DOWN" } },
      { kind: "checkpoint.started", step: 2 },
      { kind: "checkpoint.saved", step: 2 },
    ]);
    expect(readdirSync(directory)).toEqual(["latest", "step-000002"]);
    expect(liveRefs()).toBe(0);
  });

  it("abandons a save that an ended generation of the ranks can never complete", async () => {
    const directory = join(folder, "abandons");
    const saver = await Saver.start(directory);
    using spread = new SpreadState(fewParameters, { tp: 1, dp: 2, zero: 3 }).number();
    const lost = saver.save(spread, 1);
    const late = spread.parts(0, 1);
    saver.checkpointer.tell("part", late.shift() as SavePart);
    saver.checkpointer.tell("begin", { generation: 1 });
    await expect(lost).rejects.toMatchObject({ code: "CHECKPOINT_ABANDONED" });
    for (const part of late) saver.checkpointer.tell("part", part);
    const next = saver.save(spread, 1, 1);
    saver.tell(spread.parts(1, 1), 1, 1);
    await next;
    expect(readdirSync(directory)).toEqual(["latest", "step-000001"]);
    expect(liveRefs()).toBe(0);
  });

  it("keeps the parts that come before the word that their generation begins", async () => {
    const directory = join(folder, "overtakes");
    const saver = await Saver.start(directory);
    using spread = new SpreadState(fewParameters, { tp: 1, dp: 1, zero: 0 }).number();
    for (const generation of [0, 1]) {
      const step = generation + 1;
      saver.tell(spread.parts(generation, step), generation, step);
      saver.checkpointer.tell("begin", { generation });
      await saver.save(spread, step, generation);
    }
    expect(readdirSync(directory)).toEqual(["latest", "step-000001", "step-000002"]);
    expect(liveRefs()).toBe(0);
  });

  it("tells how long copying held that rank up that was held up most, over all of its parts", async () => {
    const saver = await Saver.start(join(folder, "blocked"));
    using spread = new SpreadState(fewParameters, { tp: 1, dp: 2, zero: 3 }).number();
    const inThree = { ...spread.plan, numParts: 3 };
    const saved = saver.save({ plan: inThree }, 1);
    const [one, other] = spread.parts(0, 1) as [SavePart, SavePart];
    saver.tell([one, { ...other, blockedMs: 8 }, { ...other, blockedMs: 7, state: [] }], 0, 1);
    expect(one.blockedMs).toBeLessThan(15);
    expect(await saved).toMatchObject({ blockedMs: 15 });
  });

  it("keeps one complete state, shares it with all that restore from it, and releases the one before", async () => {
    const saver = await Saver.start(undefined);
    using spread = new SpreadState(fewParameters, { tp: 2, dp: 1, zero: 1 }).number();
    const { checkpointer } = saver;
    const before = memory().totalBytes;
    for (const step of [1, 2, 3]) {
      const kept = saver.save(spread, step, 0, true);
      saver.tell(spread.parts(0, step), 0, step);
      await kept;
    }
    expect(memory().totalBytes - before).toBe(spread.plan.stagedBytes);
    const { state } = await checkpointer.ask("kept", {}, { deadlineMs });
    expect(state).toMatchObject({ step: 3, progress: { numUpdates: 3 }, sizeBytes: spread.plan.stagedBytes });
    const [{ state: first }] = spread.states as [(typeof spread.states)[number]];
    const wanted = first.tensors.map(({ kind, pieces }) => ({ kind, pieces }));
    const { values } = await checkpointer.ask("restore", { step: 3, wanted, owner }, { deadlineMs });
    for (const [index, { tensor, pieces }] of first.tensors.entries()) {
      for (const [place, { rangeBegin, numel }] of pieces.entries()) {
        const piece = attach(values[index]![place]!);
        expect(piece.equal(tensor.narrow(0, rangeBegin, numel))).toBe(true);
        piece.dispose();
      }
    }
    const gone = checkpointer.ask("restore", { step: 2, wanted, owner }, { deadlineMs });
    await expect(gone).rejects.toMatchObject({ code: "MEMORY_COPY_LOST" });
    expect(liveRefs()).toBe(0);
  });

  it("keeps a state in memory that could not be written", async () => {
    const directory = join(folder, "vanishes");
    const saver = await Saver.start(directory);
    using spread = new SpreadState(fewParameters, { tp: 1, dp: 2, zero: 3 }).number();
    rmSync(directory, { recursive: true });
    writeFileSync(directory, "in the way");
    const failing = saver.save(spread, 4, 0, true);
    saver.tell(spread.parts(0, 4), 0, 4);
    await expect(failing).rejects.toMatchObject({ code: "CHECKPOINT_SAVE_FAILED" });
    const { state } = await saver.checkpointer.ask("kept", {}, { deadlineMs });
    expect(state?.step).toBe(4);
  });

  it("saves a step that could not be written once its folder is back", async () => {
    const directory = join(folder, "returns");
    const saver = await Saver.start(directory);
    using spread = new SpreadState(fewParameters, { tp: 1, dp: 2, zero: 3 }).number();
    rmSync(directory, { recursive: true });
    writeFileSync(directory, "in the way");
    const failing = saver.save(spread, 4);
    const [early, late] = spread.parts(0, 4) as [SavePart, SavePart];
    saver.checkpointer.tell("part", early);
    await expect(failing).rejects.toMatchObject({ code: "CHECKPOINT_SAVE_FAILED" });
    saver.tell([late], 0, 4);
    await saver.checkpointer.ask("kept", {}, { deadlineMs });
    rmSync(directory);
    mkdirSync(directory);
    saver.tell(spread.parts(0, 4), 0, 4);
    expect((await saver.save(spread, 4)).path).toBe(join(directory, "step-000004"));
    expect(liveRefs()).toBe(0);
  });
});
