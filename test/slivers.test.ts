import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const source = fileURLToPath(new URL("../src", import.meta.url));

const SHORT = 30;
const MOST_SLIVERS = 20;
const MOST_IMPORTS = 30;

const texts = new Map(
  readdirSync(source, { recursive: true, encoding: "utf8" })
    .filter((file) => /(?<!\.d)\.ts$/.test(file))
    .map((file) => [file, readFileSync(join(source, file), "utf8")] as const),
);
const importers = Map.groupBy(
  [...texts].flatMap(([file, text]) =>
    [...new Set(targetsOf(file, text))].map((target) => ({ file, target })),
  ),
  ({ target }) => target,
);

/** An index.ts is a room's door; each family has files of the same names, long or short; a thread begins in a file of its own. */
const standAlone = [
  /\bindex\.ts$/,
  /^library\/models\/[^/]+\/(config|tensor-plan|family|fairseq|megatron|model-center|neox|gguf)\.ts$/,
];
const begins = new Set(
  [...texts].flatMap(([file, text]) =>
    [...text.matchAll(/new URL\(\s*"(\.[^"]+)"/g)].map(([, to = ""]) => pathOf(file, to)),
  ),
);

// A short file with one importer belongs into that importer, unless it is an idea of its own.
it(`at most ${MOST_SLIVERS} files of under ${SHORT} lines have one importer`, () => {
  const slivers = [...texts].filter(
    ([file, text]) =>
      text.split("\n").length - 1 < SHORT &&
      importers.get(file)?.length === 1 &&
      !begins.has(file) &&
      !standAlone.some((pattern) => pattern.test(file)),
  );
  const names = slivers.map(([file]) => file);
  expect(names.length, names.join("\n")).toBeLessThanOrEqual(MOST_SLIVERS);
});

it(`no file has more than ${MOST_IMPORTS} imports`, () => {
  const knots = [...texts].filter(([, text]) => importsIn(text).length > MOST_IMPORTS);
  expect(knots.map(([file]) => file)).toEqual([]);
});

function importsIn(text: string): RegExpExecArray[] {
  return [...text.matchAll(/^import\b[^;]*?"([^"]+)";/gm)];
}

function targetsOf(file: string, text: string): string[] {
  const specifiers = text.matchAll(/(?:\bfrom|\bimport|\bimport\(|\bnew URL\()\s*"(\.[^"]*)"/g);
  return [...specifiers].map(([, specifier = ""]) => pathOf(file, specifier));
}

function pathOf(file: string, specifier: string): string {
  return resolve("/", dirname(file), specifier).slice(1);
}
