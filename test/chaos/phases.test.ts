import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { lossesOf, Workspace } from "../fixtures/run-tiny.ts";
import type { Placement } from "./faults.ts";
import { STEPS, tryCell } from "./phases/cell.ts";
import { cellsOf } from "./phases/matrix.ts";
import type { Outcome } from "./verdict.ts";

// A little of `npm run chaos -- phases`, which tries every fault in every phase. Each is a program that loads libtorch.
vi.setConfig({ testTimeout: 240_000 });
const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

describe.concurrent("an actor that is struck in the middle of a phase", () => {
  let undisturbed: readonly number[] = [];
  beforeAll(async () => {
    undisturbed = await lossesOf(workspace, { ranks: 2, zero: 3, steps: STEPS });
  });

  it.each<[Placement, string, string, Outcome]>([
    ["thread", "reduce", "hang", "again"],
    ["process", "backward", "fill", "again"],
    ["thread", "write", "exit", "unsaved"],
    ["thread", "shutdown", "throw", "same"],
  ])(
    "a fault in a phase leaves nothing behind and every loss unchanged: %s, %s, %s",
    async (placement, phase, fault, outcome) => {
      const cell = cellsOf(placement).find((each) => each.phase.name === phase && each.fault.name === fault);
      const verdict = await tryCell(workspace, undisturbed, cell as NonNullable<typeof cell>);
      expect(verdict).toMatchObject({ outcome, wrong: [] });
    },
  );
});
