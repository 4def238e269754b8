import { afterEach, describe, expect, it } from "vitest";
import type { CheckpointerProtocol } from "../../src/actors/protocols/checkpointer.ts";
import type { SavePart } from "../../src/actors/protocols/snapshot.ts";
import { Snapshot } from "../../src/actors/shard/store/snapshot.ts";
import { attach, hold, liveRefs, liveTensors, memory, scope } from "../../src/compute/tensor/index.ts";
import type { ActorRef } from "../../src/runtime/index.ts";
import { type SplitParameter, SpreadState } from "../fixtures/spread-state.ts";

/** Several stretches a tensor, the last one short. */
const large: readonly SplitParameter[] = [{ name: "weight", shape: [2_100_001], dim: 0 }];

/** A snapshot of one rank's numbered state after step 7, and what it has sent. */
function snapshotOf({ states }: SpreadState, numBlocks = 1) {
  const sent: SavePart[] = [];
  const { rank, state } = states[0]!;
  const checkpointer = {
    address: { system: "test", name: "checkpointer", incarnation: 1, uid: 0, lanes: {} },
    tell: (_kind: string, part: SavePart) => sent.push(part),
  } as unknown as ActorRef<CheckpointerProtocol>;
  const blocks = [state.block].slice(0, numBlocks);
  return { sent, state, snapshot: new Snapshot({ step: 7, generation: 2, rank, checkpointer, blocks }) };
}

/** Makes every value another one, as an update does. */
function overwrite(state: SpreadState["states"][number]["state"]): void {
  for (const { tensor } of state.tensors) scope(() => tensor.fill_(-1));
}

/** @returns whether what was sent is what the state was when it was numbered; gives it back */
function isAsNumbered(spread: SpreadState, part: SavePart): boolean {
  for (const [index, { tensor }] of spread.states[0]!.state.tensors.entries()) {
    const copy = hold(() => attach(part.state[index]!.ref));
    scope(() => tensor.copy_(copy));
    copy.dispose();
  }
  return spread.isNumbered;
}

afterEach(() => {
  expect(liveRefs()).toBe(0);
  expect(liveTensors()).toBe(0);
  expect(memory().byTag.snapshot ?? 0).toBe(0);
});

describe("a snapshot", () => {
  it("a snapshot is copied off the event loop, sent completely, and blocks no update", async () => {
    using spread = new SpreadState(large, { tp: 1, dp: 1, zero: 0 }).number();
    const { sent, state, snapshot } = snapshotOf(spread);
    let numTurns = 0;
    const copied = snapshot.copyOffThread(state);
    const isOver = copied.then(() => true);
    while (!(await Promise.race([isOver, new Promise((resolve) => setImmediate(resolve, false))])))
      numTurns++;
    expect(numTurns).toBeGreaterThan(0);
    overwrite(state);
    expect(sent).toMatchObject([{ generation: 2, step: 8, rank: 0 }]);
    expect(isAsNumbered(spread, sent[0]!)).toBe(true);
    expect(snapshot.lacks(state.block)).toBe(false);
  });

  it("a snapshot that an update finds half copied is finished first and sent once, and the update's wait is reported", async () => {
    using spread = new SpreadState(large, { tp: 1, dp: 1, zero: 0 }).number();
    const { sent, state, snapshot } = snapshotOf(spread);
    const copied = snapshot.copyOffThread(state);
    await snapshot.copy(state);
    expect(sent).toHaveLength(1);
    overwrite(state);
    await copied;
    await snapshot.copy(state);
    expect(sent).toHaveLength(1);
    expect(sent[0]!.blockedMs).toBeGreaterThan(0);
    expect(isAsNumbered(spread, sent[0]!)).toBe(true);
  });

  it("a snapshot that is abandoned while a stretch is under way sends nothing and frees its memory", async () => {
    using spread = new SpreadState(large, { tp: 1, dp: 1, zero: 0 }).number();
    const { sent, state, snapshot } = snapshotOf(spread);
    const copied = snapshot.copyOffThread(state);
    snapshot.dispose();
    await copied;
    await new Promise(setImmediate);
    expect(sent).toEqual([]);
  });

  it("a snapshot copies only requested blocks", async () => {
    using spread = new SpreadState(large, { tp: 1, dp: 1, zero: 0 }).number();
    const { sent, state, snapshot } = snapshotOf(spread, 0);
    await snapshot.copyOffThread(state);
    await snapshot.copy(state);
    expect(sent).toEqual([]);
  });
});
