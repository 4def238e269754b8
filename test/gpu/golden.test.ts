// The golden states of transformers on a GPU: the same tests, of a thread that computes there. TROUPE_GOLDEN names their folder
// where it does not lie beside the repository.
import { test } from "vitest";
import { enterDevice } from "../../src/compute/tensor/index.ts";
import { hasGpu } from "./gpu.ts";

if (hasGpu) {
  enterDevice("cuda:0");
  await import("../golden/alone.test.ts");
} else {
  test.skip("golden states on a GPU");
}
