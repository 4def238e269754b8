import { expect, it } from "vitest";
import { gpuMemory, memory, releaseCachedMemory, tagMemory, zeros } from "../../src/compute/tensor/index.ts";
import { hasGpu } from "./gpu.ts";

it.skipIf(!hasGpu)("memory of a GPU stands in the ledger by tag, beside what CUDA itself tells", () => {
  const bytes = 64 * 2 ** 20;
  zeros([1], { device: "cuda:0" });
  releaseCachedMemory();
  const [ledger, gpu] = [memory(), gpuMemory(0)];
  const tensor = tagMemory("gradients", () => zeros([bytes / 4], { device: "cuda:0" }));
  const [ledgerWith, gpuWith] = [memory(), gpuMemory(0)];
  expect(ledgerWith.totalBytes - ledger.totalBytes).toBe(bytes);
  expect((ledgerWith.byTag.gradients ?? 0) - (ledger.byTag.gradients ?? 0)).toBe(bytes);
  expect(gpuWith.liveBytes - gpu.liveBytes).toBe(bytes);
  expect(gpu.freeBytes - gpuWith.freeBytes).toBeGreaterThanOrEqual(bytes);
  tensor.dispose();
  expect(memory().byTag.gradients ?? 0).toBe(ledger.byTag.gradients ?? 0);
  expect(gpuMemory(0).heldBytes).toBe(gpuWith.heldBytes);
  releaseCachedMemory();
  expect(gpuMemory(0).freeBytes).toBe(gpu.freeBytes);
});
