import { describe, expect, it } from "vitest";
import { CallLog, type CallReader } from "../../src/actors/engine/conductor/call-log.ts";

/** Adds `count` steps, each of one accumulation. */
function addSteps(log: CallLog, count: number): void {
  const batch = { range: { split: "train", position: 0, numSamples: 1 } };
  for (let step = 0; step < count; step++) {
    void log.add("accumulate", { program: "loss", args: undefined, batch, numSamples: 1 });
    void log.add("step", { learningRate: undefined });
  }
}

/** Takes the calls that are there. @returns the kind of each and the steps before it */
function takeAll(reader: CallReader): string[] {
  const taken: string[] = [];
  for (let call = reader.take(); call !== undefined; call = reader.take())
    taken.push(`${call.kind} ${call.step}`);
  return taken;
}

describe("the calls of a live model", () => {
  it("are made again from the state that is kept, and those before it are forgotten", () => {
    const log = new CallLog();
    const reader = log.read(0);
    addSteps(log, 3);
    expect(takeAll(reader)).toHaveLength(6);
    log.keep(2);
    expect(takeAll(log.read(2))).toEqual(["accumulate 2", "step 2"]);
    expect(() => log.read(1)).toThrow(
      "[model] expected the calls since step 1, the newest state that can be read, got those since step 2",
    );
  });

  it("stay until they are made again, though ranks that have ended save a later state", () => {
    const log = new CallLog();
    addSteps(log, 3);
    takeAll(log.read(0));
    const reader = log.read(0);
    reader.take();
    log.keep(3);
    expect(takeAll(reader)).toEqual(["step 0", "accumulate 1", "step 1", "accumulate 2", "step 2"]);
  });

  it("stay while ranks are restarted, though a later state is saved before they read", () => {
    const log = new CallLog();
    addSteps(log, 3);
    takeAll(log.read(0));
    log.restart();
    log.keep(3);
    expect(takeAll(log.read(1))).toEqual(["accumulate 1", "step 1", "accumulate 2", "step 2"]);
  });

  it("that read alone are not made again once they are answered", async () => {
    const log = new CallLog();
    const reader = log.read(0);
    const evaluated = log.add("evaluate", undefined);
    const later = log.add("evaluate", undefined);
    const call = reader.take();
    if (call?.kind !== "evaluate") throw new Error("expected an evaluation");
    call.answer({});
    expect(await evaluated).toEqual({});
    expect(takeAll(log.read(0))).toEqual(["evaluate 0"]);
    log.end(new Error("the run failed"));
    await expect(later).rejects.toThrow("the run failed");
    await expect(log.add("evaluate", undefined)).rejects.toThrow("the run failed");
  });
});
