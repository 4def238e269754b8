import { afterAll, describe, expect, it } from "vitest";
import { checkPacket } from "../../../src/runtime/transport/packet.ts";
import { Workspace } from "../../fixtures/run-tiny.ts";
import { Chance } from "../chance.ts";
import { fuzz } from "./fuzz.ts";
import { openTargets } from "./targets.ts";

const workspace = new Workspace();
const targets = await openTargets(workspace.path("fuzz"));
afterAll(async () => {
  await targets[Symbol.asyncDispose]();
  workspace[Symbol.dispose]();
});

// `npm run chaos -- fuzz --minutes N` goes on for as long as it is asked to.
describe("untrusted bytes", () => {
  it.each(targets.all.map((target) => [target.name, target] as const))(
    "untrusted bytes are accepted or refused, with no other effect: %s",
    async (_name, target) => {
      const { findings } = await fuzz(target, new Chance(13), { numInputs: 2_000 });
      expect(findings).toEqual([]);
    },
  );

  it.each([
    ["no array", 7],
    ["a header that is no number", ["x", "go", 1, 0]],
    ["a kind that is no string", [0, 1, 1, 0, 0, 0]],
    ["a run of two billion messages", [1 << 11, "go", 2 ** 31, 0]],
    ["a run of none, which would never end", [1 << 11, "go", 0]],
    ["a run of fewer than none", [1 << 11, "go", -3]],
    ["a record that is cut off", [0, "go", 1]],
  ])("bytes that are no packet are refused before they are parsed: %s", (_what, packet) => {
    expect(() => checkPacket(packet)).toThrow(expect.objectContaining({ code: "FRAME_INVALID" }));
  });
});
