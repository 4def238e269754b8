import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  arange,
  attach,
  emptyShared,
  liveRefs,
  memory,
  moveRef,
  releaseCachedMemory,
  releaseRefsOf,
  shareRef,
  type Tensor,
  tagMemory,
  tensor,
} from "../../src/compute/tensor/index.ts";
import { type ActorRef, ActorSystem } from "../../src/runtime/index.ts";
import { patience } from "../fixtures/patience.ts";
import type { HolderProtocol } from "../fixtures/tensor/holder.ts";

const deadlineMs = 20_000;

function numbers(tensor: Tensor): number[] {
  return Array.from(tensor.toTypedArray() as Float32Array);
}

/** Files through which this program's processes share memory: tensors they hold, and tensors on their way. */
function sharedFiles(): string[] {
  const mine = readdirSync("/dev/shm").filter((name) => name.split("-")[3] === String(process.pid));
  return mine.flatMap((name) => readdirSync(join("/dev/shm", name))).filter((name) => /^[pr]\d+-/.test(name));
}

describe("a tensor that crosses to another process", () => {
  let system: ActorSystem;
  let left: ActorRef<HolderProtocol>;
  let right: ActorRef<HolderProtocol>;

  beforeEach(async () => {
    system = new ActorSystem({
      name: "test",
      preload: new URL("../../src/actors/preload/one-host.ts", import.meta.url),
      onUnhandled: () => {},
    });
    const module = new URL("../fixtures/tensor/holder.ts", import.meta.url);
    left = await system.spawn<HolderProtocol>({ name: "left", module, placement: "process" });
    right = await system.spawn<HolderProtocol>({ name: "right", module, placement: "process" });
  });
  afterEach(() => system.stop());

  it("arrives with its elements, dtype and strides, copied once where its memory was its process's own", async () => {
    const plain = tensor([0.5, -1.5, 3, 4, 5, 6], { shape: [2, 3] });
    expect(await left.ask("take", { ref: moveRef(plain) }, { deadlineMs })).toEqual([0.5, -1.5, 3, 4, 5, 6]);
    expect(plain.disposed).toBe(true);
    const turned = arange(6, { dtype: "bfloat16" }).view([2, 3]).transpose(0, 1);
    expect(await left.ask("take", { ref: shareRef(turned) }, { deadlineMs })).toEqual([0, 3, 1, 4, 2, 5]);
    expect(await left.ask("take", { ref: moveRef(tensor(7)) }, { deadlineMs })).toEqual([7]);
    expect(await left.ask("take", { ref: moveRef(emptyShared([0, 4])) }, { deadlineMs })).toEqual([]);
  });

  it("is one memory for all where it was made to be shared: slices of it are written by their owners", async () => {
    const whole = emptyShared([6]);
    whole.zero_();
    const mine = whole.narrow(0, 2, 2);
    const slices = [whole.narrow(0, 0, 2), whole.narrow(0, 4, 2)].map((slice) => moveRef(slice));
    const wholes = [shareRef(whole), shareRef(whole)];
    for (const [index, holder] of [left, right].entries()) {
      await holder.ask("take", { ref: slices[index]! }, { deadlineMs });
      expect(await holder.ask("fill", index + 1, { deadlineMs })).toBe("");
    }
    mine.fill_(9);
    for (const [index, holder] of [left, right].entries()) {
      expect(await holder.ask("take", { ref: wholes[index]! }, { deadlineMs })).toEqual([1, 1, 9, 9, 2, 2]);
    }
    const made = await left.ask("make", { shape: [3], dtype: "float32", value: 4 }, { deadlineMs });
    expect(numbers(attach(made))).toEqual([4, 4, 4]);
  });

  it.each(["its process's own", "shared"])(
    "a tensor that two read may not be written (memory: %s)",
    async (kind) => {
      const read = kind === "shared" ? emptyShared([2]) : tensor([0, 0]);
      read.fill_(1);
      await left.ask("take", { ref: shareRef(read) }, { deadlineMs });
      expect(() => read.fill_(2)).toThrow(expect.objectContaining({ code: "TENSOR_SHARED" }));
      expect(await left.ask("fill", 3, { deadlineMs })).toBe("TENSOR_READ_ONLY");
      await left.ask("drop", null, { deadlineMs });
      read.fill_(2);
      expect(numbers(read)).toEqual([2, 2]);
    },
  );

  it("is its sender's again when the reader's process is killed", async () => {
    const read = emptyShared([2]);
    await left.ask("take", { ref: shareRef(read) }, { deadlineMs });
    const failed = new Promise((resolve) => system.watch(left, resolve));
    process.kill(await left.ask("pid", null, { deadlineMs }), "SIGKILL");
    await failed;
    read.fill_(2);
    expect(await right.ask("take", { ref: shareRef(read) }, { deadlineMs })).toEqual([2, 2]);
  });

  it("goes on from one process to the next", async () => {
    const made = await left.ask("make", { shape: [2], dtype: "float32", value: 3 }, { deadlineMs });
    expect(await right.ask("take", { ref: made }, { deadlineMs })).toEqual([3, 3]);
    expect(liveRefs()).toBe(0);
  });

  it("an exported tensor can be taken once, and is released if no receiver takes it", async () => {
    const twice = moveRef(tensor([1]));
    await left.ask("take", { ref: twice }, { deadlineMs });
    await expect(right.ask("take", { ref: { ...twice } }, { deadlineMs })).rejects.toMatchObject({
      code: "MESSAGE_UNSENDABLE",
    });
    await left.ask("drop", null, { deadlineMs });
    const shared = tensor([1]);
    await right.ask("ignore", shareRef(shared, { owner: "right#1" }), { deadlineMs });
    expect(await right.ask("counts", null, { deadlineMs })).toMatchObject({ liveRefs: 1 });
    await system.stopActor(right);
    left.tell("ignore", moveRef(tensor([1]), { owner: "left#1" }));
    process.kill(await left.ask("pid", null, { deadlineMs }), "SIGKILL");
    await new Promise((resolve) => system.watch(left, resolve));
    right.tell("ignore", moveRef(tensor([1])));
    await new Promise(setImmediate);
    releaseRefsOf("left#1");
    expect(liveRefs()).toBe(0);
    await vi.waitFor(() => {
      shared.fill_(2); // refused until its reader's process has let it go
      releaseCachedMemory(); // what is kept for the next tensors
      expect(sharedFiles()).toEqual([]);
    }, patience);
  });

  it("has one way out of a program: a second system with processes is refused while the first runs", async () => {
    const second = new ActorSystem({
      name: "second",
      preload: new URL("../../src/actors/preload/one-host.ts", import.meta.url),
    });
    const module = new URL("../fixtures/tensor/holder.ts", import.meta.url);
    const refused = second.spawn<HolderProtocol>({ name: "x", module, placement: "process" });
    await expect(refused).rejects.toMatchObject({ code: "SHARED_FOLDER_TAKEN" });
    await second.stop();
    await system.stop();
    const third = new ActorSystem({
      name: "third",
      preload: new URL("../../src/actors/preload/one-host.ts", import.meta.url),
    });
    const holder = await third.spawn<HolderProtocol>({ name: "x", module, placement: "process" });
    expect(await holder.ask("take", { ref: moveRef(tensor([8])) }, { deadlineMs })).toEqual([8]);
    await third.stop();
  });

  it("is counted once a host, with its kind: where it was made, and whither it moved", async () => {
    const sizeBytes = 4 * 1024;
    const shared = tagMemory("parameters", () => emptyShared([1024]));
    const before = memory().byTag.parameters ?? 0;
    await left.ask("take", { ref: shareRef(shared) }, { deadlineMs });
    expect(await left.ask("counts", null, { deadlineMs })).toMatchObject({ sharedBytes: 0 });
    expect(memory().byTag.parameters).toBe(before);
    await left.ask("drop", null, { deadlineMs });
    shared.dispose();
    expect(memory().byTag.parameters).toBe(before - sizeBytes);
    const sent = tagMemory("sent", () => tensor(new Float32Array(1024)));
    await left.ask("take", { ref: moveRef(sent) }, { deadlineMs });
    expect(await left.ask("counts", null, { deadlineMs })).toMatchObject({ sharedBytes: sizeBytes });
  });
});
