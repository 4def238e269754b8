// docs/reference/bmtrain.md names tests; a test that is renamed must be renamed there.
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const root = new URL("../../../", import.meta.url);
const page = readFileSync(new URL("docs/reference/bmtrain.md", root), "utf8");

/** The files and titles of one row or paragraph: each title belongs to the file before it. */
function named(text: string): { readonly file: string; readonly title: string }[] {
  let file = "";
  return [...text.matchAll(/`(test\/[\w./-]+\.ts)`|"([^"]+)"/g)].flatMap(([, path, title]) => {
    file = path ?? file;
    return title === undefined ? [] : [{ file, title }];
  });
}

const rows = page.split("\n").filter((line) => line.startsWith("| ") && line.includes("`test/"));
const prose = page.split("\n\n").filter((part) => !part.startsWith("|") && !part.startsWith("#"));
const tests = [...rows, ...prose].flatMap(named);

describe("the register of BMTrain's tests, defects and golden values", () => {
  it("names tests that are there", () => {
    expect(tests.length).toBeGreaterThan(60);
    const missing = tests.filter(({ file, title }) => {
      const path = new URL(file, root);
      return !existsSync(path) || !readFileSync(path, "utf8").includes(`"${title}"`);
    });
    expect(missing).toEqual([]);
  });

  it("has a row for each of the 21 defects, in order", () => {
    const numbers = rows.flatMap((row) => /^\| (\d+) +\|/.exec(row)?.[1] ?? []);
    expect(numbers).toEqual(Array.from({ length: 21 }, (_, index) => String(index + 1)));
  });
});
