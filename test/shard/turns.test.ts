import { describe, expect, it } from "vitest";
import { Turns } from "../../src/actors/shard/store/turns.ts";

describe("Turns", () => {
  it("deals one a turn, of those that wait the lowest place first, of equals the one that came first", async () => {
    const turns = new Turns();
    const order: string[] = [];
    const asked = [
      ["first", 9],
      ["c", 3],
      ["a", 1],
      ["b", 2],
      ["a again", 1],
    ] as const;
    await Promise.all(asked.map(([name, place]) => turns.next(place).then(() => order.push(name))));
    // The first found no waiter.
    expect(order).toEqual(["first", "a", "a again", "b", "c"]);
  });

  it("lets other turns of the loop pass between two pieces of work", async () => {
    const turns = new Turns();
    let passed = 0;
    let running = true;
    const pass = () => {
      passed += 1;
      if (running) setImmediate(pass);
    };
    setImmediate(pass);
    const at: number[] = [];
    await Promise.all(Array.from({ length: 5 }, () => turns.next().then(() => at.push(passed))));
    running = false;
    expect(new Set(at).size).toBe(5);
  });
});
