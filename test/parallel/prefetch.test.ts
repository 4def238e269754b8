import { describe, expect, it } from "vitest";
import { Prefetcher } from "../../src/compute/parallel/index.ts";

/** Three blocks of 10 bytes behind a resident root: forward and backward of one step, as a trace of what happened. */
function runStep(prefetcher: Prefetcher<number>, trace: string[], order = [1, 2, 3]): void {
  const compute = (name: string, block: number) => {
    prefetcher.need(block);
    trace.push(`${name}${block}`);
    prefetcher.release(block);
  };
  prefetcher.begin("step");
  prefetcher.need(0);
  for (const block of order) compute("forward", block);
  for (const block of order.toReversed()) compute("backward", block);
}

function prefetcherWith(windowBytes: number, trace: string[]): Prefetcher<number> {
  const port = {
    start: (block: number) => {
      trace.push(`gather${block}`);
      return block;
    },
    wait: (block: number) => void trace.push(`wait${block}`),
    release: (block: number) => void trace.push(`release${block}`),
  };
  return new Prefetcher(port, {
    sizeBytes: [10, 10, 10, 10],
    resident: [true, false, false, false],
    windowBytes,
  });
}

function secondStep(windowBytes: number): string[] {
  const trace: string[] = [];
  const prefetcher = prefetcherWith(windowBytes, trace);
  runStep(prefetcher, trace);
  trace.length = 0;
  runStep(prefetcher, trace);
  return trace;
}

const indexOf = (trace: readonly string[], entry: string) => trace.indexOf(entry);

describe("Prefetcher", () => {
  it("starts gathers of later blocks before an earlier one computes, once it has seen a step", () => {
    const trace = secondStep(20);
    expect(indexOf(trace, "gather2")).toBeLessThan(indexOf(trace, "forward1"));
    expect(indexOf(trace, "gather3")).toBeLessThan(indexOf(trace, "forward2"));
  });

  it("gathers only on demand with a window of 0", () => {
    const trace = secondStep(0);
    expect(indexOf(trace, "gather2")).toBeGreaterThan(indexOf(trace, "forward1"));
    expect(indexOf(trace, "gather3")).toBeGreaterThan(indexOf(trace, "forward2"));
  });

  it("starts all gathers of a forward at once with an unlimited window", () => {
    const trace = secondStep(Number.POSITIVE_INFINITY);
    expect(trace.slice(0, 4)).toEqual(["gather0", "gather1", "gather2", "gather3"]);
  });

  it("prefetch has at most the window's bytes under way, except for blocks that are needed at once", () => {
    const trace = secondStep(10);
    let underWay = 0;
    for (const entry of trace) {
      if (entry.startsWith("gather")) underWay += 1;
      if (entry.startsWith("wait")) underWay -= 1;
      expect(underWay).toBeLessThanOrEqual(2);
    }
  });

  it("keeps the last block of forward for the first of backward", () => {
    const trace = secondStep(0);
    expect(trace.filter((entry) => entry === "gather3")).toHaveLength(1);
    expect(indexOf(trace, "release3")).toBeGreaterThan(indexOf(trace, "backward3"));
  });

  it("gathers a block that is kept for backward once, however far the window reaches", () => {
    for (const windowBytes of [10, 20, Number.POSITIVE_INFINITY]) {
      const trace = secondStep(windowBytes);
      expect(trace.filter((entry) => entry === "gather3")).toHaveLength(1);
    }
  });

  it("has backward's next block on its way before the last one of forward is computed", () => {
    const trace = secondStep(10);
    expect(trace.lastIndexOf("gather2")).toBeLessThan(indexOf(trace, "forward3"));
    expect(trace.lastIndexOf("gather2")).toBeGreaterThan(indexOf(trace, "release2"));
  });

  it("gathers one block ahead where the window is smaller than any", () => {
    const trace = secondStep(1);
    expect(indexOf(trace, "gather2")).toBeLessThan(indexOf(trace, "forward1"));
    expect(indexOf(trace, "gather3")).toBeGreaterThan(indexOf(trace, "forward1"));
  });

  it("waits for every gather it started, also when a step strays from the record", () => {
    const trace: string[] = [];
    const prefetcher = prefetcherWith(Number.POSITIVE_INFINITY, trace);
    runStep(prefetcher, trace);
    trace.length = 0;
    runStep(prefetcher, trace, [2, 1]);
    runStep(prefetcher, trace, [2, 1]);
    prefetcher.begin("other");
    const count = (prefix: string) => trace.filter((entry) => entry.startsWith(prefix)).length;
    expect(count("wait")).toBe(count("gather"));
    expect(trace.filter((entry) => entry.startsWith("forward"))).toEqual([
      "forward2",
      "forward1",
      "forward2",
      "forward1",
    ]);
  });

  it("computes nothing before its parameters are complete", () => {
    for (const windowBytes of [0, 10, 25, Number.POSITIVE_INFINITY]) {
      const trace = secondStep(windowBytes);
      for (const block of [1, 2, 3]) {
        expect(indexOf(trace, `wait${block}`)).toBeLessThan(indexOf(trace, `forward${block}`));
        expect(indexOf(trace, `wait${block}`)).toBeGreaterThanOrEqual(0);
      }
    }
  });
});
