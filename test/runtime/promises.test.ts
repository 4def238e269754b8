import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const promisesPage = new URL("../../docs/internals/delivery.md", import.meta.url);
const measured = ["DL-22"];

/** The ids of promises in `text`, each once, in the order of their numbers. */
function idsIn(text: string): string[] {
  const ids = new Set(text.match(/DL-\d+/g));
  return [...ids].toSorted((left, right) => Number(left.slice(3)) - Number(right.slice(3)));
}

test("every promise of docs/internals/delivery.md is made once, and kept by a test or a measurement", () => {
  const page = readFileSync(promisesPage, "utf8");
  const made = page.match(/^\*\*DL-\d+/gm)?.map((heading) => heading.slice(2)) ?? [];
  expect(new Set(made).size).toBe(made.length);
  const folder = new URL("./", import.meta.url);
  const tests = readdirSync(folder).filter(
    (file) => file.endsWith(".test.ts") && file !== "promises.test.ts",
  );
  const titles = tests.flatMap(
    (file) => readFileSync(new URL(file, folder), "utf8").match(/"DL-\d+ [^"]+"/g) ?? [],
  );
  expect(idsIn([...titles, ...measured].join(" "))).toEqual(idsIn(made.join(" ")));
});
