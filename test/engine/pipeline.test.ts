import { describe, expect, it } from "vitest";
import { Pipeline } from "../../src/actors/engine/conductor/pipeline.ts";

describe("Pipeline", () => {
  it("tells outcomes in the order of the work, whichever ends first", async () => {
    const pipeline = new Pipeline(3);
    const reported: string[] = [];
    const slow = Promise.withResolvers<string>();
    await pipeline.add(slow.promise, (outcome) => reported.push(outcome));
    await pipeline.add(Promise.resolve("second"), (outcome) => reported.push(outcome));
    slow.resolve("first");
    await pipeline.drain();
    expect(reported).toEqual(["first", "second"]);
  });

  it("makes who adds too much wait for the oldest piece", async () => {
    const pipeline = new Pipeline(2);
    const first = Promise.withResolvers<void>();
    await pipeline.add(first.promise, () => {});
    let added = false;
    const second = pipeline
      .add(Promise.resolve(), () => {})
      .then(() => {
        added = true;
      });
    await Promise.resolve();
    expect(added).toBe(false);
    first.resolve();
    await second;
    expect(added).toBe(true);
  });

  it("throws the first failure at once, also where an older piece never ends, and tells nothing after it", async () => {
    const pipeline = new Pipeline(2);
    const reported: string[] = [];
    await pipeline.add(new Promise<string>(() => {}), (outcome) => reported.push(outcome));
    await expect(pipeline.add(Promise.reject(new Error("a rank is gone")), () => {})).rejects.toThrow(
      "a rank is gone",
    );
    await expect(pipeline.unlessFailed(new Promise(() => {}))).rejects.toThrow("a rank is gone");
    await expect(pipeline.drain()).rejects.toThrow("a rank is gone");
    expect(reported).toEqual([]);
  });

  it("keeps nothing of waits that are over", async () => {
    const pipeline = new Pipeline(2);
    const waitFor = async (outcome: object) => {
      await pipeline.unlessFailed(Promise.resolve(outcome));
      return new WeakRef(outcome);
    };
    const outcome = await waitFor({});
    await new Promise((resolve) => setImmediate(resolve));
    globalThis.gc?.();
    expect(outcome.deref()).toBeUndefined();
  });
});
