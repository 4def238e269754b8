import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { cutPower } from "./power.ts";
import { canRecord } from "./record.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "troupe-power-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

// `npm run chaos -- power` tries every state.
describe.skipIf(!canRecord)(
  "a power cut at any moment (recorded by strace; skipped where that is not there or not allowed)",
  () => {
    it("a power cut leaves every acknowledged save, whatever the disk had not written yet", async () => {
      const { numStates, lost } = await cutPower(folder, { keep: 1, steps: [1, 2], every: 3 });
      expect(numStates).toBeGreaterThan(100);
      expect(lost).toEqual([]);
    });

    it.each([
      ["files", (path: string) => path.endsWith(".safetensors")],
      ["folders", (path: string) => !path.includes(".safetensors") && !path.includes(".json")],
    ])("a power cut would lose saves if %s were not synchronised", async (_what, isMeant) => {
      const { lost } = await cutPower(folder, {
        keep: 1,
        steps: [1, 2],
        every: 50,
        believe: (operation) => operation.kind !== "sync" || !isMeant(operation.path),
      });
      expect(lost.length).toBeGreaterThan(0);
    });
  },
);
