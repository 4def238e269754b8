import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  arange,
  emptyPaged,
  grad,
  hold,
  markOffloaded,
  memory,
  occupy,
  PAGE_BYTES,
  scope,
  shareRef,
  type Tensor,
  tagMemory,
  vacate,
  zeros,
} from "../../src/compute/tensor/index.ts";
import { ActorSystem } from "../../src/runtime/index.ts";
import type { HolderProtocol } from "../fixtures/tensor/holder.ts";
import { refusal } from "./numbers.ts";

const floatsInPage = PAGE_BYTES / 4;
const tag = "paged-test";
const paged = (numel: number) => tagMemory(tag, () => hold(() => emptyPaged(numel, "float32")));
const fill = (tensor: Tensor, first: number) =>
  scope(() => void tensor.copy_(arange(first + tensor.numel, { start: first, dtype: "float32" })));

describe("paged memory", () => {
  it("is complete pages, counted while it is occupied and no longer", () => {
    const memoryOf = () => memory().byTag[tag] ?? 0;
    const before = memoryOf();
    const tensor = paged(floatsInPage + 1);
    expect(tensor.numel).toBe(2 * floatsInPage);
    expect(memoryOf() - before).toBe(2 * PAGE_BYTES);
    for (const [change, bytes] of [
      [vacate, 0],
      [vacate, 0],
      [occupy, 2 * PAGE_BYTES],
      [occupy, 2 * PAGE_BYTES],
      [vacate, 0],
    ] as const) {
      change(tensor);
      expect(memoryOf() - before).toBe(bytes);
    }
    tensor.dispose();
    expect(memoryOf()).toBe(before);
  });

  it("is filled again in place: views made before see it", () => {
    const tensor = paged(4 * floatsInPage);
    const view = hold(() => tensor.narrow(0, floatsInPage, floatsInPage));
    fill(tensor, 1);
    vacate(tensor);
    occupy(tensor);
    expect(scope(() => view.abs().sum().item())).toBe(0);
    fill(tensor, 7);
    expect(view.toTypedArray()[0]).toBe(7 + floatsInPage);
    view.dispose();
    tensor.dispose();
  });

  it("only paged tensors can be vacated and occupied", () => {
    const tensor = zeros([floatsInPage]);
    expect(refusal(() => vacate(tensor))).toMatchObject({ code: "TENSOR_ARGUMENT" });
    expect(refusal(() => occupy(tensor))).toMatchObject({ code: "TENSOR_ARGUMENT" });
    tensor.dispose();
  });

  it("is refused to readers while it is marked as away, and keeps its place in the graph", () => {
    scope(() => {
      const memory = emptyPaged(floatsInPage, "float32");
      fill(memory, 0);
      const leaf = memory.narrow(0, 0, 4).detach().requiresGrad_();
      const loss = leaf.mul(leaf).sum();
      markOffloaded([leaf], true);
      expect(refusal(() => leaf.sum())).toMatchObject({ code: "TENSOR_OFFLOADED" });
      markOffloaded([leaf], false);
      const [gradient] = grad([loss], [leaf]);
      expect([...(gradient as Tensor).toTypedArray()]).toEqual([0, 2, 4, 6]);
    });
  });

  it("goes back to the system in every process that shares it, and is counted by the one that made it", async () => {
    const system = new ActorSystem({
      name: "test",
      preload: new URL("../../src/actors/preload/one-host.ts", import.meta.url),
      onUnhandled: () => {},
    });
    try {
      const module = new URL("../fixtures/tensor/holder.ts", import.meta.url);
      const other = await system.spawn<HolderProtocol>({ name: "other", module, placement: "process" });
      const ask = { deadlineMs: 20_000 };
      const tensor = paged(64 * floatsInPage);
      const before = memory().byTag[tag];
      // Shared for reading, as parameters are; what was cut before stays writable.
      const pages = hold(() => tensor.narrow(0, 0, tensor.numel));
      fill(tensor, 0);
      const read = () => other.ask("read", null, ask);
      await other.ask("take", { ref: shareRef(tensor) }, ask);
      const occupied = sharedBytes();
      vacate(pages);
      expect(occupied - sharedBytes()).toBe(64 * PAGE_BYTES);
      expect(memory().byTag[tag]).toBe((before as number) - 64 * PAGE_BYTES);
      occupy(pages);
      expect(sharedBytes()).toBe(occupied);
      expect((await read()).every((value) => value === 0)).toBe(true);
      fill(pages, 5);
      expect((await read()).slice(0, 3)).toEqual([5, 6, 7]);
      await other.ask("drop", null, ask);
      for (const each of [tensor, pages]) each.dispose();
    } finally {
      await system.stop();
    }
  });
});

/** The real size of the files through which this program's processes share memory; one may have several names. */
function sharedBytes(): number {
  const mine = readdirSync("/dev/shm").filter((name) => name.split("-")[3] === String(process.pid));
  const files = mine.flatMap((folder) =>
    readdirSync(join("/dev/shm", folder)).map((name) => statSync(join("/dev/shm", folder, name))),
  );
  const blocks = new Map(files.map((file) => [file.ino, file.blocks]));
  return 512 * [...blocks.values()].reduce((sum, each) => sum + each, 0);
}
