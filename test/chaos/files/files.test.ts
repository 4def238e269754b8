import { afterAll, describe, expect, it } from "vitest";
import { Workspace } from "../../fixtures/run-tiny.ts";
import { Chance } from "../chance.ts";
import { fuzzFiles } from "./files.ts";
import { makers } from "./makers.ts";
import { readers } from "./readers.ts";

const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

// `npm run chaos -- files --files N --seed N` makes as many as are asked for.
describe("a hostile file", () => {
  it("a hostile file of any kind is accepted or refused with one sentence, within a second of computing and 200 MB", async () => {
    expect(Object.keys(makers)).toEqual(Object.keys(readers));
    const kinds = Object.keys(readers);
    const reports = await fuzzFiles(workspace.path("files"), {
      kinds,
      filesOfKind: 4,
      chance: new Chance(5),
    });
    expect(reports.flatMap(({ kind, findings }) => findings.map((finding) => `${kind}: ${finding}`))).toEqual(
      [],
    );
    expect(reports.map(({ numTaken, numRefused }) => numTaken + numRefused)).toEqual(kinds.map(() => 4));
  });
});
