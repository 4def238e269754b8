import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type PipelineAction,
  type PipelineShape,
  pipelineSchedule,
  type ScheduleName,
} from "../../src/compute/parallel/index.ts";

const schedules = (name: ScheduleName, shape: PipelineShape) =>
  Array.from({ length: shape.numStages }, (_, stage) => pipelineSchedule(name, stage, shape));

/** The most activations (one micro-batch through one chunk each) that a stage holds at once. */
function maxInFlight(actions: readonly PipelineAction[]): number {
  let held = 0;
  return Math.max(...actions.map(({ kind }) => (held += kind === "forward" ? 1 : -1)));
}

const described = (name: ScheduleName, numStages: number, numMicroBatches: number, numChunks = 1) =>
  schedules(name, { numStages, numMicroBatches, numChunks }).map(describeSchedule);

/** A schedule and a shape for which it exists. */
const anyPipeline = fc
  .record({
    name: fc.constantFrom<ScheduleName>("gpipe", "1f1b", "interleaved"),
    numStages: fc.integer({ min: 1, max: 6 }),
    rounds: fc.integer({ min: 1, max: 4 }),
    chunks: fc.integer({ min: 2, max: 4 }),
  })
  .map(({ name, numStages, rounds, chunks }) => {
    const numChunks = name === "interleaved" ? chunks : 1;
    return { name, shape: { numStages, numMicroBatches: numStages * rounds, numChunks } };
  });

const keyOf = ({ kind, microBatch }: PipelineAction, place: number) => `${kind}/${microBatch}/${place}`;

/**
 * Runs all stages in virtual time: an action begins when its stage is free and what it receives has been sent; sends
 * take no time and do not wait.
 * @returns when the last action ends
 * @throws when no stage can go on
 */
function makespan(
  name: ScheduleName,
  shape: PipelineShape,
  forwardTime: number,
  backwardTime: number,
): number {
  const { numStages, numChunks } = shape;
  const last = numStages * numChunks - 1;
  const endOf = new Map<string, number>();
  const free = new Array<number>(numStages).fill(0);
  const rest = schedules(name, shape).map((actions) => [...actions]);
  while (rest.some((actions) => actions.length > 0)) {
    let moved = false;
    for (const [stage, actions] of rest.entries()) {
      const action = actions[0];
      if (action === undefined) continue;
      const place = action.chunk * numStages + stage;
      const received = awaited(action, place, last).map((key) => endOf.get(key));
      if (received.includes(undefined)) continue;
      const time = action.kind === "forward" ? forwardTime : backwardTime;
      const end = Math.max(free[stage] as number, ...(received as number[])) + time;
      endOf.set(keyOf(action, place), end);
      free[stage] = end;
      actions.shift();
      moved = true;
    }
    if (!moved) throw new Error(`deadlock: ${rest.map(describeSchedule).join(" | ")}`);
  }
  return Math.max(...free);
}

function awaited({ kind, microBatch }: PipelineAction, place: number, last: number): string[] {
  if (kind === "forward") return place === 0 ? [] : [`forward/${microBatch}/${place - 1}`];
  return place === last ? [`forward/${microBatch}/${last}`] : [`backward/${microBatch}/${place + 1}`];
}

describe("pipelineSchedule", () => {
  it("runs all forwards before all backwards under gpipe", () => {
    expect(described("gpipe", 2, 4)).toEqual([
      "F0 F1 F2 F3 B0 B1 B2 B3", //
      "F0 F1 F2 F3 B0 B1 B2 B3",
    ]);
  });

  it("gives Megatron's 1F1B for 2 and 4 stages, 4 and 8 micro-batches", () => {
    expect(described("1f1b", 2, 4)).toEqual([
      "F0 F1 B0 F2 B1 F3 B2 B3", //
      "F0 B0 F1 B1 F2 B2 F3 B3",
    ]);
    expect(described("1f1b", 2, 8)).toEqual([
      "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7",
      "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7",
    ]);
    expect(described("1f1b", 4, 4)).toEqual([
      "F0 F1 F2 F3 B0 B1 B2 B3",
      "F0 F1 F2 B0 F3 B1 B2 B3",
      "F0 F1 B0 F2 B1 F3 B2 B3",
      "F0 B0 F1 B1 F2 B2 F3 B3",
    ]);
    expect(described("1f1b", 4, 8)).toEqual([
      "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7",
      "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 B6 B7",
      "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7",
      "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7",
    ]);
  });

  it("gives Megatron's interleaved 1F1B for 2 and 4 stages, 4 and 8 micro-batches, 2 chunks", () => {
    expect(described("interleaved", 2, 4, 2)).toEqual([
      "F0a F1a F0b F1b F2a B0b F3a B1b F2b B0a F3b B1a B2b B3b B2a B3a",
      "F0a F1a F0b B0b F1b B1b F2a B0a F3a B1a F2b B2b F3b B3b B2a B3a",
    ]);
    expect(described("interleaved", 2, 8, 2)).toEqual([
      "F0a F1a F0b F1b F2a B0b F3a B1b F2b B0a F3b B1a F4a B2b F5a B3b F4b B2a F5b B3a F6a B4b F7a B5b F6b B4a F7b B5a B6b B7b B6a B7a",
      "F0a F1a F0b B0b F1b B1b F2a B0a F3a B1a F2b B2b F3b B3b F4a B2a F5a B3a F4b B4b F5b B5b F6a B4a F7a B5a F6b B6b F7b B7b B6a B7a",
    ]);
    expect(described("interleaved", 4, 4, 2)).toEqual([
      "F0a F1a F2a F3a F0b F1b F2b F3b B0b B1b B2b B3b B0a B1a B2a B3a",
      "F0a F1a F2a F3a F0b F1b F2b F3b B0b B1b B2b B3b B0a B1a B2a B3a",
      "F0a F1a F2a F3a F0b F1b F2b B0b F3b B1b B2b B3b B0a B1a B2a B3a",
      "F0a F1a F2a F3a F0b B0b F1b B1b F2b B2b F3b B3b B0a B1a B2a B3a",
    ]);
    expect(described("interleaved", 4, 8, 2)).toEqual([
      "F0a F1a F2a F3a F0b F1b F2b F3b F4a F5a F6a B0b F7a B1b F4b B2b F5b B3b F6b B0a F7b B1a B2a B3a B4b B5b B6b B7b B4a B5a B6a B7a",
      "F0a F1a F2a F3a F0b F1b F2b F3b F4a B0b F5a B1b F6a B2b F7a B3b F4b B0a F5b B1a F6b B2a F7b B3a B4b B5b B6b B7b B4a B5a B6a B7a",
      "F0a F1a F2a F3a F0b F1b F2b B0b F3b B1b F4a B2b F5a B3b F6a B0a F7a B1a F4b B2a F5b B3a F6b B4b F7b B5b B6b B7b B4a B5a B6a B7a",
      "F0a F1a F2a F3a F0b B0b F1b B1b F2b B2b F3b B3b F4a B0a F5a B1a F6a B2a F7a B3a F4b B4b F5b B5b F6b B6b F7b B7b B4a B5a B6a B7a",
    ]);
  });

  it("holds at most p − stage micro-batches under 1F1B, all under gpipe, Megatron's warm-up and one interleaved", () => {
    const held = (name: ScheduleName, numMicroBatches: number, numChunks = 1) =>
      schedules(name, { numStages: 4, numMicroBatches, numChunks }).map(maxInFlight);
    expect(held("1f1b", 8)).toEqual([4, 3, 2, 1]);
    expect(held("1f1b", 2)).toEqual([2, 2, 2, 1]);
    expect(held("gpipe", 8)).toEqual([8, 8, 8, 8]);
    expect(held("interleaved", 8, 2)).toEqual([11, 9, 7, 5]);
    expect(held("interleaved", 8, 3)).toEqual([15, 13, 11, 9]);
  });

  it("runs every micro-batch once each way through every chunk, forward first, in the order of micro-batches", () => {
    fc.assert(
      fc.property(anyPipeline, ({ name, shape }) => {
        for (const actions of schedules(name, shape)) {
          expect(actions.length).toBe(2 * shape.numMicroBatches * shape.numChunks);
          for (let chunk = 0; chunk < shape.numChunks; chunk++) {
            const inOrder = Array.from({ length: shape.numMicroBatches }, (_, index) => index);
            const ofKind = (kind: string) =>
              actions.filter((action) => action.chunk === chunk && action.kind === kind);
            expect(ofKind("forward").map((action) => action.microBatch)).toEqual(inOrder);
            expect(ofKind("backward").map((action) => action.microBatch)).toEqual(inOrder);
          }
          const seen = new Set<string>();
          for (const action of actions) {
            if (action.kind === "backward") expect(seen).toContain(`${action.microBatch}/${action.chunk}`);
            seen.add(`${action.microBatch}/${action.chunk}`);
          }
        }
      }),
    );
  });

  it("never deadlocks, and stands idle for (p − 1) / m of the ideal time, or 1 / v of that interleaved", () => {
    fc.assert(
      fc.property(anyPipeline, ({ name, shape }) => {
        const { numStages, numMicroBatches, numChunks } = shape;
        // Integers, so that the sums are exact. A chunk is 1 / v of a stage.
        const [forwardTime, backwardTime] = [1, 2];
        const ideal = numMicroBatches * numChunks * (forwardTime + backwardTime);
        const bubble = makespan(name, shape, forwardTime, backwardTime) / ideal - 1;
        expect(bubble).toBeCloseTo((numStages - 1) / (numMicroBatches * numChunks), 12);
      }),
    );
  });

  it("refuses interleaved micro-batches that are no multiple of the stages, naming the nearest that are", () => {
    const shape = { numStages: 4, numMicroBatches: 6, numChunks: 2 };
    expect(() => pipelineSchedule("interleaved", 0, shape)).toThrow(
      expect.objectContaining({ code: "PIPELINE_SCHEDULE", message: expect.stringContaining("use 4 or 8") }),
    );
    expect(() => pipelineSchedule("interleaved", 0, { ...shape, numMicroBatches: 3 })).toThrow("(use 4)");
  });

  it("refuses chunks where the schedule has none, and interleaving without them", () => {
    expect(() => pipelineSchedule("1f1b", 0, { numStages: 2, numMicroBatches: 2, numChunks: 2 })).toThrow(
      "use interleaved",
    );
    expect(() =>
      pipelineSchedule("interleaved", 0, { numStages: 2, numMicroBatches: 2, numChunks: 1 }),
    ).toThrow("use 1f1b");
  });

  it("refuses a stage outside the pipeline", () => {
    expect(() => pipelineSchedule("1f1b", 2, { numStages: 2, numMicroBatches: 2, numChunks: 1 })).toThrow(
      "a stage from 0 to 1",
    );
  });
});

/** A schedule as people write it, `F0 F1 B0 B1`; with chunks, a letter says which: `F0a F1a F0b`. */
function describeSchedule(actions: readonly PipelineAction[]): string {
  const chunked = actions.some((action) => action.chunk > 0);
  const letter = (chunk: number) => (chunked ? String.fromCharCode("a".charCodeAt(0) + chunk) : "");
  return actions
    .map(({ kind, microBatch, chunk }) => `${kind === "forward" ? "F" : "B"}${microBatch}${letter(chunk)}`)
    .join(" ");
}
