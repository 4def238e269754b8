import { describe, expect, it } from "vitest";
import { Exchange } from "../../src/actors/shard/group/exchange.ts";

describe("Exchange", () => {
  it("gives every rank's value in rank order, however they came", async () => {
    const exchange = new Exchange<string>(3);
    exchange.contribute("reduce/0/1", 2, "c");
    const all = exchange.all("reduce/0/1");
    exchange.contribute("reduce/0/1", 0, "a");
    exchange.contribute("reduce/0/1", 1, "b");
    expect(await all).toEqual(["a", "b", "c"]);
  });

  it("answers a late question about values that came early", async () => {
    const exchange = new Exchange<number>(2);
    exchange.contribute("norm/4", 1, 11);
    exchange.contribute("norm/4", 0, 10);
    expect(await exchange.all("norm/4")).toEqual([10, 11]);
  });

  it("an exchange separates keys, so ranks may use them in any order", async () => {
    const exchange = new Exchange<number>(2);
    exchange.contribute("a", 0, 1);
    exchange.contribute("b", 1, 4);
    exchange.contribute("b", 0, 3);
    expect(await exchange.all("b")).toEqual([3, 4]);
    exchange.contribute("a", 1, 2);
    expect(await exchange.all("a")).toEqual([1, 2]);
  });

  it("names the ranks that a collective waits for", () => {
    const exchange = new Exchange<number>(3);
    exchange.contribute("reduce/7/2", 1, 0);
    expect(exchange.pending()).toEqual([{ key: "reduce/7/2", missing: [0, 2] }]);
  });

  it("forgets a key once its parts were complete and taken", async () => {
    const exchange = new Exchange<number>(1);
    exchange.contribute("a", 0, 1);
    await exchange.all("a");
    expect(exchange.pending()).toEqual([]);
  });

  it("an aborted exchange fails all waiters", async () => {
    const exchange = new Exchange<number>(2);
    exchange.contribute("a", 0, 1);
    const early = exchange.all("a");
    exchange.abort(new Error("a rank is gone"));
    await expect(early).rejects.toThrow("a rank is gone");
    await expect(exchange.all("b")).rejects.toThrow("a rank is gone");
  });

  it("refuses a second value of one rank under one key", () => {
    const exchange = new Exchange<number>(2);
    exchange.contribute("a", 0, 1);
    expect(() => exchange.contribute("a", 0, 1)).toThrow(/expected one contribution of rank 0 to a, got two/);
  });
});
