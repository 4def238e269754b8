import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { type PunktModel, punktSentences, readPunkt } from "../../../src/library/data/index.ts";
import { sharedPath } from "../../fixtures/shared.ts";

/** A Python that has nltk. */
const python = process.env.TROUPE_NLTK;
const data = sharedPath("data");

/** A model as a trainer might have learnt it: `the` was seen small within sentences and great at their beginnings. */
const model: PunktModel = {
  abbreviations: new Set(["mr", "e.g", "u.s"]),
  collocations: new Set(["no\t##number##"]),
  starters: new Set(["however"]),
  cases: new Map([
    ["the", (1 << 1) | (1 << 5)],
    ["smith", 1 << 2],
    ["is", 1 << 5],
  ]),
};

describe("Punkt's sentences", () => {
  it.each([
    ["Mr. Smith is here. The boat left!", ["Mr. Smith is here.", "The boat left!"]],
    ["He lives in the U.S. The king is not. ", ["He lives in the U.S.", "The king is not."]],
    ["It was in the U.S. However it is gone.", ["It was in the U.S.", "However it is gone."]],
    ["See no. 5 is open. J. Smith is here.", ["See no. 5 is open.", "J. Smith is here."]],
    ['("Who is it?") "The king." He left.', ['("Who is it?")', '"The king."', "He left."]],
    ["Wait... is it over?!  The\nend", ["Wait... is it over?!", "The\nend"]],
    ["  ", []],
  ])("of %j", (text, sentences) => {
    expect(punktSentences(text, model)).toEqual(sentences);
  });

  it.each([
    [
      "Mr. Smith is here.\n\nThe boat left!  It is gone.\n",
      ["Mr. Smith is here.\n\n", "The boat left!  ", "It is gone."],
    ],
    ['"Who is it?"\nThe king.', ['"Who is it?"', "The king."]],
    ["It is 3.14 today.The end!now", ["It is 3.14 today.The end!now"]],
  ])("of %j keep what is white behind them where newlines are kept", (text, sentences) => {
    expect(punktSentences(text, model, true)).toEqual(sentences);
  });

  it("are refused where a file of the model is not there", () => {
    expect(() => readPunkt("/nowhere")).toThrow(
      "expected NLTK's ortho_context.tab in /nowhere, got no such file",
    );
  });

  it.skipIf(python === undefined || data === undefined)(
    "are NLTK's, of real texts and of marks at random (where TROUPE_NLTK has it)",
    () => {
      const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
      const script = fileURLToPath(new URL("punkt.py", import.meta.url));
      execFileSync(python as string, [script, data as string, folder], { stdio: "ignore" });
      const cases = JSON.parse(readFileSync(join(folder, "cases.json"), "utf8")) as [
        string,
        string[],
        string[],
      ][];
      const learnt = readPunkt(join(folder, "punkt"));
      const other = cases.filter(
        ([text, theirs, keeping]) =>
          punktSentences(text, learnt).join("\0") !== theirs.join("\0") ||
          punktSentences(text, learnt, true).join("\0") !== keeping.join("\0"),
      );
      expect([other, cases.length]).toEqual([[], 16_000]);
      rmSync(folder, { recursive: true });
    },
  );
});
