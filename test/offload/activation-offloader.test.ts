import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ActivationOffloader, type OffloadedActivation } from "../../src/compute/offload/index.ts";
import { arange, hold, memory, ops, scope, type Tensor } from "../../src/compute/tensor/index.ts";
import { refusal } from "../tensor/numbers.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "troupe-offload-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const numel = 50_000;

/** A memory with two names, as a block's input has. */
function pair(first: number): [Tensor, Tensor] {
  const tensor = hold(() =>
    arange(first + numel, { start: first, dtype: "float32" })
      .view([100, numel / 100])
      .clone(),
  );
  return [tensor, hold(() => tensor.detach().requiresGrad_())];
}

const isFilled = ([tensor, alias]: readonly Tensor[], first: number) =>
  scope(() => {
    const expected = arange(first + numel, { start: first, dtype: "float32" }).view([100, numel / 100]);
    return [tensor, alias].every((each) => each?.detach().equal(expected));
  });

const open = () => new ActivationOffloader(folder, { deadlineMs: 60_000, leastBytes: 1 });

describe("ActivationOffloader", () => {
  it("restores every memory unchanged, in the reverse order and in any other", () => {
    for (const order of [
      [5, 4, 3, 2, 1, 0],
      [2, 5, 0, 1, 4, 3],
    ]) {
      const offloader = open();
      const pairs = order.map((_, index) => pair(index));
      const tickets = pairs.map((aliases) => offloader.keep(aliases) as OffloadedActivation);
      for (const [place, index] of order.entries()) {
        offloader.bring(tickets[index] as OffloadedActivation);
        const next = order[place + 1];
        if (next !== undefined) offloader.expect(tickets[next] as OffloadedActivation);
        expect(isFilled(pairs[index] ?? [], index)).toBe(true);
      }
      for (const tensor of pairs.flat()) tensor.dispose();
      offloader.dispose();
    }
  });

  it("writes nothing any more of an activation that was dropped", () => {
    const offloader = open();
    for (let round = 0; round < 20; round++) {
      const [dropped, kept] = [pair(round), pair(round + 100)];
      offloader.drop(offloader.keep(dropped) as OffloadedActivation);
      // In the same place of the file, and read from there.
      const tickets = [kept, pair(1), pair(2), pair(3)].map(
        (aliases) => [aliases, offloader.keep(aliases) as OffloadedActivation] as const,
      );
      for (const [, ticket] of tickets) offloader.bring(ticket);
      expect(isFilled(kept, round + 100)).toBe(true);
      for (const tensor of [...dropped, ...tickets.flatMap(([aliases]) => aliases)]) tensor.dispose();
    }
    offloader.dispose();
  });

  it("frees the memory at once, and refuses reads until it is back", () => {
    const offloader = open();
    const held = memory().byTag[""] ?? 0;
    const aliases = pair(1);
    const ticket = offloader.keep(aliases) as OffloadedActivation;
    expect((memory().byTag[""] ?? 0) - held).toBeLessThan(numel * 4);
    for (const tensor of aliases)
      expect(refusal(() => tensor.sum())).toMatchObject({ code: "TENSOR_OFFLOADED" });
    offloader.bring(ticket);
    expect(isFilled(aliases, 1)).toBe(true);
    for (const tensor of aliases) tensor.dispose();
    offloader.dispose();
  });

  it("leaves alone what something else uses too: a view, the graph, a tensor over a part", () => {
    const offloader = open();
    const [tensor, alias] = pair(0);
    const view = hold(() => tensor.view([-1]));
    expect(offloader.keep([tensor, alias])).toBeUndefined();
    view.dispose();
    const product = hold(() => alias.square());
    expect(offloader.keep([tensor, alias])).toBeUndefined();
    expect(isFilled([tensor, alias], 0)).toBe(true);
    product.dispose();
    const part = hold(() => tensor.narrow(0, 0, 50));
    expect(offloader.keep([part])).toBeUndefined();
    part.dispose();
    expect(offloader.keep([tensor, alias])).toBeDefined();
    for (const each of [tensor, alias]) each.dispose();
    offloader.dispose();
  });

  it.each([
    [
      "transposed",
      () =>
        arange(numel, { dtype: "float32" })
          .view([100, numel / 100])
          .t(),
    ],
    ["expanded", () => ops.ones([1, 100], "float32").expand([numel / 100, 100])],
  ])("leaves alone a tensor that is %s", (_, make) => {
    const offloader = open();
    const tensor = hold(() => make().detach());
    const before = scope(() => tensor.sum().item());
    expect(offloader.keep([tensor])).toBeUndefined();
    expect(scope(() => tensor.sum().item())).toBe(before);
    tensor.dispose();
    offloader.dispose();
  });

  it("reuses the places of dropped records, and leaves nothing in its folder", () => {
    const offloader = open();
    const [first] = Array.from({ length: 40 }, (_, index) => {
      const aliases = pair(index);
      const ticket = offloader.keep(aliases) as OffloadedActivation;
      for (const tensor of aliases) tensor.dispose();
      offloader.drop(ticket);
      return ticket.slot;
    });
    const last = pair(0);
    expect((offloader.keep(last) as OffloadedActivation).slot).toBe(first);
    expect(readdirSync(folder)).toEqual([]);
    for (const tensor of last) tensor.dispose();
    offloader.dispose();
  });
});
