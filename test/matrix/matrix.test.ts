import { afterAll, describe, expect, it } from "vitest";
import { Workspace } from "../fixtures/run-tiny.ts";
import { holds, Matrix } from "./matrix.ts";
import { switches } from "./switches.ts";

const named = (...names: string[]) =>
  names.map((name) => {
    const found = switches.find((each) => each.name === name);
    if (found === undefined) throw new Error(`no switch ${name}`);
    return found;
  });

// Combinations of very different mechanisms that no other test combines; `npm run matrix` tries every pair.
describe("switches compose", () => {
  const workspace = new Workspace();
  const matrix = new Matrix(workspace);
  afterAll(() => workspace[Symbol.dispose]());

  it.each([
    ["zero 3", "tp 2 sp"],
    ["zero 2", "pp 2 × 2"],
    ["tp 2", "pp 2 1f1b"],
    ["zero 3", "ep 2"],
    ["ep 2", "pp 2 gpipe"],
    ["bf16", "pp 2 1f1b"],
    ["processes", "tp 2"],
    ["offload nvme", "pp 2 1f1b"],
    ["parameters nvme", "tp 2", "offload half", "gather on demand"],
    ["ragged targets", "fp16", "zero 2"],
    ["own loop", "parameters nvme", "accumulate 2", "dropout", "bf16"],
    ["own loop", "tp 2 sp", "ragged targets", "recompute"],
    ["own loop", "ep 2", "processes"],
    ["tp 2 sp", "pp 2 × 2", "zero 1", "recompute", "offload half"],
  ])("%s with %s", async (...names) => {
    const outcome = await matrix.try(named(...names));
    expect(outcome.failure).toBeUndefined();
    expect(outcome).toSatisfy(holds);
  });
});
