import { expect, it } from "vitest";
import {
  attach,
  dtypes,
  liveRefs,
  moveRef,
  ones,
  packRef,
  releaseRefsOf,
  scope,
  shareRef,
  unpackRef,
} from "../../src/compute/tensor/index.ts";

it.each(dtypes)(
  "packs a strided tensor of %s into bytes that lie anywhere, and unpacks its elements",
  (dtype) => {
    scope(() => {
      const sent = ones([3, 5], { dtype }).transpose(0, 1);
      const packed = packRef(shareRef(sent));
      const message = Buffer.concat([Buffer.from([7]), packed.bytes]);
      const taken = attach(unpackRef({ ...packed, bytes: message.subarray(1) }));
      expect(taken.dtype).toBe(dtype);
      expect(taken.shape).toEqual([5, 3]);
      expect(taken.toTypedArray()).toEqual(sent.toTypedArray());
    });
  },
);

it("gives a shared tensor back to its sender at once, and answers for it by the receiver's name", () => {
  scope(() => {
    const before = liveRefs();
    const sent = ones([4]);
    const packed = packRef(shareRef(sent, { owner: "reader" }));
    sent.add_(1);
    unpackRef(packed);
    expect(liveRefs()).toBe(before + 1);
    expect(releaseRefsOf("reader")).toBe(1);
    const moved = moveRef(ones([2]));
    packRef(moved);
    expect(() => attach(moved)).toThrow(expect.objectContaining({ code: "TENSOR_REF_GONE" }));
  });
});
