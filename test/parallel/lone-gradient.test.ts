import { describe, expect, it } from "vitest";
import type { ProcessGroup } from "../../src/compute/collectives/index.ts";
import { ones } from "../../src/compute/nn/index.ts";
import { layoutBlock, replicas, ShardStore } from "../../src/compute/parallel/index.ts";
import { hold, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import { numbers } from "../tensor/numbers.ts";

/** A group of one rank, which is never asked to sum. */
const lone = { rank: 0, size: 1 } as ProcessGroup;
const spec = { name: "w", shape: [1024], dtype: "float32", init: ones } as const;

async function reduced(gradient: Tensor): Promise<ShardStore> {
  const layout = layoutBlock(0, "block", 2, [spec], replicas(1));
  const store = new ShardStore(0, gradient.dtype);
  store.add(layout, store.allocateFull(layout));
  await store.reduce(0, "reduce", gradient, lone);
  return store;
}

const wave = Float32Array.from({ length: 1024 }, (_, index) => Math.sin(index));
const narrow = () => hold(() => tensor(wave).to("bfloat16"));
const wide = () => hold(() => tensor(wave).to("bfloat16").to("float32"));

describe("the gradient of a rank alone", () => {
  it("stays in its dtype, with the squares and values of its float32 form", async () => {
    const [ours, reference] = await Promise.all([reduced(narrow()), reduced(wide())]);
    scope(() => {
      expect(numbers(ours.squareSums(0, []))).toEqual(numbers(reference.squareSums(0, [])));
      expect(ours.ownedGradient(0).dtype).toBe("float32");
      expect(numbers(ours.ownedGradient(0))).toEqual(numbers(reference.ownedGradient(0)));
    });
    expect(ours.largestGradient(0)).toBe(reference.largestGradient(0));
    const taken = ours.takeGradient(0);
    expect(taken.dtype).toBe("bfloat16");
    taken.dispose();
    for (const store of [ours, reference]) store.dispose();
  });

  it("is clamped at the limit, not at the limit in bfloat16", async () => {
    const store = await reduced(narrow());
    store.clampGradient(0, 0.3);
    expect(store.largestGradient(0)).toBe(Math.fround(0.3));
    store.dispose();
  });
});
