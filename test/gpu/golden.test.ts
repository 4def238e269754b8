// The golden states of transformers on a GPU: the same tests, of a thread that computes there. TROUPE_GOLDEN names their folder
// where it does not lie beside the repository.
import { expect, test } from "vitest";
import { enterDevice, scope, zeros } from "../../src/compute/tensor/index.ts";
import { hasGpu } from "./gpu.ts";

if (hasGpu) {
  enterDevice("cuda:0");
  await import("../golden/alone.test.ts");
}

test.skipIf(!hasGpu)("the golden states' thread computes on a GPU", () => {
  expect(scope(() => zeros([1]).device)).toBe("cuda:0");
});
