import { describe, expect, it } from "vitest";
import { LinearPattern, PatternRefused } from "../../src/errors/untrusted/index.ts";
import { publishedPatterns } from "../../src/library/data/tokenizers/engine.ts";
import { Chance } from "../chaos/chance.ts";

const atoms = [
  "a",
  "b",
  "[ab]",
  "[^a]",
  ".",
  "\\w",
  "\\s",
  "\\b",
  "^",
  "$",
  "\\B",
  "\\p{L}",
  "\\u0061",
  "\\x62",
];

/** Any pattern, such as may repeat what is repeated, look ahead and behind, and be lazy. */
function anyPattern(chance: Chance, depth: number): string {
  const inner = () => anyPattern(chance, depth - 1);
  const lazy = () => chance.pick(["", "", "?"]);
  const makers: readonly (() => string)[] = [
    () => chance.pick(atoms),
    () => inner() + inner(),
    () => `(?:${inner()}|${inner()})`,
    () => `(${inner()})*${lazy()}`,
    () => `(?:${inner()})+${lazy()}`,
    () => `(?:${inner()}){${chance.below(2)},${1 + chance.below(3)}}${lazy()}`,
    () => `(?${chance.pick(["=", "!", "<=", "<!"])}${inner()})`,
    () => `(?:${inner()})?${lazy()}`,
  ];
  return depth === 0 ? chance.pick(atoms) : chance.pick(makers)();
}

/** A pattern that is not matched in linear time here is no part of the comparison. */
function compiled(source: string): LinearPattern | undefined {
  try {
    return new LinearPattern(source);
  } catch (error) {
    if (error instanceof PatternRefused) return undefined;
    throw error;
  }
}

const found = (text: string, pattern: RegExp) =>
  [...text.matchAll(pattern)].map((match) => [match.index, match[0]]);
const foundHere = (text: string, pattern: LinearPattern) =>
  [...pattern.matches(text)].map(({ begin, end }) => [begin, text.slice(begin, end)]);

describe("a pattern in linear time", () => {
  it("finds what RegExp finds, and cuts texts as it does", () => {
    const chance = new Chance(3);
    let numCompared = 0;
    for (let index = 0; index < 4_000; index++) {
      const source = anyPattern(chance, 4);
      const pattern = compiled(source);
      if (pattern === undefined) continue;
      const text = Array.from({ length: chance.below(10) }, () => chance.pick([..."aabc \n\u2581"])).join("");
      expect([source, text, foundHere(text, pattern)]).toEqual([
        source,
        text,
        found(text, new RegExp(source, "gu")),
      ]);
      const bare = new RegExp(`(${source.replace(/\((?!\?)/g, "(?:")})`, "gu");
      // RegExp's split passes over empty matches.
      const isText = (part: string) => part !== "";
      expect(pattern.cut(text).filter(isText)).toEqual(text.split(bare).filter(isText));
      numCompared++;
    }
    expect(numCompared).toBeGreaterThan(1_000);
  });

  it("cuts texts as RegExp does by the patterns of published tokenizers", () => {
    const text = "I've 1234567 words,\r\n\n   and  ÜNICODE Straße's 北京\u{1F600}\u{1F600}!!  \t x\n ".repeat(
      50,
    );
    for (const published of Object.values(publishedPatterns)) {
      // As the engine writes them for JavaScript.
      const source = published
        .replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)", "(?:'[sS]|'[tT]|'[rR][eE]|'[mM]|'[lL][lL])")
        .replaceAll(/\(\?i:[^)]*\)/g, "(?:'[sS])")
        .replace("[^(\\s|[.,!?…。，、।۔،])]", "[^()|\\s.,!?…。，、।۔،]");
      expect(foundHere(text, new LinearPattern(source)), source).toEqual(
        found(text, new RegExp(source, "gu")),
      );
    }
  });

  // RegExp would take longer than the universe has been there for most of them.
  it.each([
    ["(a+)+$", `${"a".repeat(20_000)}b`, 0],
    ["(a|a)*b", "a".repeat(20_000), 0],
    ["(a|aa)+$", `${"a".repeat(20_000)}b`, 0],
    ["a(?=.*z)|a", "a".repeat(20_000), 20_000],
    ["\\s*x", " ".repeat(20_000), 0],
    ["(?<=a*b.*)c", "a".repeat(5_000) + "c".repeat(5_000), 0],
    ["(.*,){20}P", ",".repeat(5_000), 0],
    ["(?:a+)+$|b*", `${"a".repeat(20_000)}b`, 20_002],
  ])("ends over a text of thousands of characters: %s", (source, text, numMatches) => {
    expect([...new LinearPattern(source).matches(text)]).toHaveLength(numMatches);
  });

  it.each([
    ["(a)\\1", "\\\\1"],
    ["(?<n>a)\\k<n>", "\\\\k"],
    ["(?i:a)", "(?i:"],
    ["(a*)*", "a repetition of what can be empty"],
    ["(", "Unterminated group"],
    ["a{1,5000}", "its repetitions written out"],
    [`${"(".repeat(100)}a${")".repeat(100)}`, "nested more than 64 deep"],
    ["a".repeat(5_000), "a pattern of 5000 characters"],
  ])("is refused, in words, where it cannot be: %s", (source, words) => {
    expect(() => new LinearPattern(source)).toThrow(PatternRefused);
    expect(() => new LinearPattern(source)).toThrow(words);
  });
});
