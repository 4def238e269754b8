import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import {
  attach,
  liveRefs,
  moveRef,
  releaseRef,
  releaseRefsOf,
  shareRef,
  type TensorRef,
  tensor,
  zeros,
} from "../../src/compute/tensor/index.ts";
import type { RefRequest } from "../fixtures/tensor/ref-worker.ts";
import { numbers, refusal } from "./numbers.ts";

let running: Worker | undefined;

afterEach(() => {
  expect(liveRefs()).toBe(0);
});

afterAll(stopWorker);

/** Ends the other thread; the next {@link ask} starts a new one. */
async function stopWorker(): Promise<void> {
  await running?.terminate();
  running = undefined;
}

async function ask(request: RefRequest): Promise<{ result?: unknown; code?: string }> {
  running ??= new Worker(new URL("../fixtures/tensor/ref-worker.ts", import.meta.url));
  running.postMessage(request);
  const [answer] = await once(running, "message");
  return answer;
}

describe("a moved tensor", () => {
  it("is gone for the sender at once and complete for the receiver", async () => {
    const t = tensor([1, 2, 3]);
    const ref = moveRef(t);
    expect(t.disposed).toBe(true);
    expect(refusal(() => t.add(1))).toMatchObject({ code: "TENSOR_DISPOSED" });
    expect(ref).toEqual({
      kind: "tensor-ref",
      id: ref.id,
      generation: ref.generation,
      dtype: "float32",
      shape: [3],
      owner: "",
    });
    await ask({ do: "attach", ref });
    expect(await ask({ do: "sum" })).toEqual({ result: 6 });
  });

  it("comes back with what the other thread wrote", async () => {
    const { result } = await ask({ do: "move-twice-as-big", ref: moveRef(tensor([1, 2])) });
    expect(numbers(attach(result as TensorRef))).toEqual([2, 4]);
  });

  it("is attached once", async () => {
    const ref = moveRef(zeros([2]));
    await ask({ do: "attach", ref });
    expect(refusal(() => attach(ref))).toMatchObject({ code: "TENSOR_REF_GONE" });
    expect(releaseRef(ref)).toBe(false);
  });

  it("carries neither graph nor requiresGrad", async () => {
    const x = tensor([1]).requiresGrad_();
    expect(await ask({ do: "attach", ref: moveRef(x.mul(2)) })).toEqual({ result: false });
  });

  it("can be dropped under way by its sender", () => {
    const ref = moveRef(zeros([2]));
    expect(releaseRef(ref)).toBe(true);
    expect(refusal(() => attach(ref))).toMatchObject({ code: "TENSOR_REF_GONE" });
  });

  it("is not confused with a later ref of the same id", () => {
    const ref = moveRef(zeros([2]));
    expect(refusal(() => attach({ ...ref, generation: ref.generation + 1 }))).toMatchObject({
      code: "TENSOR_REF_GONE",
    });
    attach(ref).dispose();
  });
});

describe("a shared tensor", () => {
  it("a shared tensor is read by both and written by neither until the receiver releases it", async () => {
    const t = tensor([1, 2]);
    await ask({ do: "attach", ref: shareRef(t) });
    expect(await ask({ do: "sum" })).toEqual({ result: 3 });
    expect(await ask({ do: "write" })).toEqual({ code: "TENSOR_READ_ONLY" });
    expect(await ask({ do: "write-view" })).toEqual({ code: "TENSOR_READ_ONLY" });
    expect(numbers(t)).toEqual([1, 2]);
    expect(refusal(() => t.mul_(2))).toMatchObject({ code: "TENSOR_SHARED" });
    expect(refusal(() => t.copyFrom(new Float32Array(2)))).toMatchObject({ code: "TENSOR_SHARED" });
    expect(refusal(() => moveRef(t))).toMatchObject({ code: "TENSOR_SHARED" });
    await ask({ do: "dispose" });
    expect(numbers(t.mul_(2))).toEqual([2, 4]);
  });

  it("a ref that is not attached yet keeps its tensor", () => {
    const t = zeros([2]);
    const [first, second] = [shareRef(t), shareRef(t)];
    releaseRef(first);
    expect(refusal(() => t.add_(1))).toMatchObject({ code: "TENSOR_SHARED" });
    releaseRef(second);
    t.add_(1);
  });

  it("is free again when its reader's thread is terminated", async () => {
    const t = tensor([1]);
    await ask({ do: "attach", ref: shareRef(t) });
    expect(refusal(() => t.add_(1))).toMatchObject({ code: "TENSOR_SHARED" });
    await stopWorker();
    expect(numbers(t.add_(1))).toEqual([2]);
  });

  it("outlives its sender's handle", async () => {
    const t = tensor([1, 2]);
    const ref = shareRef(t);
    t.dispose();
    await ask({ do: "attach", ref });
    expect(await ask({ do: "sum" })).toEqual({ result: 3 });
  });

  it("stays protected when the receiver passes it on", () => {
    const t = tensor([1]);
    const passedOn = attach(moveRef(attach(shareRef(t))));
    const again = attach(shareRef(passedOn));
    passedOn.dispose();
    expect(refusal(() => again.add_(1))).toMatchObject({ code: "TENSOR_READ_ONLY" });
    expect(refusal(() => t.add_(1))).toMatchObject({ code: "TENSOR_SHARED" });
    again.dispose();
    t.add_(1);
  });
});

describe("refs of a dead owner", () => {
  it("are released by the supervisor, others are not", async () => {
    await ask({ do: "make" });
    await ask({ do: "make" });
    const mine = moveRef(zeros([1]), { owner: "supervisor" });
    await stopWorker();
    expect(liveRefs()).toBe(3);
    expect(releaseRefsOf("worker")).toBe(2);
    expect(releaseRefsOf("worker")).toBe(0);
    attach(mine).dispose();
  });
});
