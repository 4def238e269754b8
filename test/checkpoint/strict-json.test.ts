import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TroupeError } from "../../src/errors/index.ts";
import { parseJsonObject } from "../../src/library/checkpoint/format/strict-json.ts";

const json = fc
  .dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 }))
  .map((value) => JSON.stringify(value))
  .filter((text) => !text.includes("__proto__") && JSON.parse(text) !== null);

describe("a strict reader of JSON", () => {
  test("agrees with JSON.parse on what both accept", () => {
    fc.assert(
      fc.property(json, fc.constantFrom(undefined, 1, "\t"), (text, indent) => {
        const spaced = JSON.stringify(JSON.parse(text), null, indent);
        expect(parseJsonObject(spaced, "sample")).toEqual(JSON.parse(text));
      }),
    );
  });

  test("never accepts what JSON.parse refuses, and fails in no other way than by its own error", () => {
    const damage = fc.record({ at: fc.nat(), insert: fc.string({ maxLength: 3 }), remove: fc.nat(3) });
    fc.assert(
      fc.property(json, fc.array(damage, { maxLength: 3 }), (text, damages) => {
        let damaged = text;
        for (const { at, insert, remove } of damages) {
          const index = at % (damaged.length + 1);
          damaged = damaged.slice(0, index) + insert + damaged.slice(index + remove);
        }
        try {
          expect(parseJsonObject(damaged, "sample")).toEqual(JSON.parse(damaged));
        } catch (error) {
          expect(error).toBeInstanceOf(TroupeError);
        }
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    ["a repeated key", '{"a":1,"a":2}'],
    ["a repeated key further in", '{"a":{"b":1,"b":1}}'],
    ["a repeated key spelled otherwise", '{"a":1,"\\u0061":2}'],
    ["a key that means the prototype", '{"__proto__":{}}'],
    ["an integer that a double rounds", '{"a":9007199254740993}'],
    ["a number beyond doubles", '{"a":1e999}'],
    ["an integer beyond doubles", `{"a":1${"0".repeat(400)}}`],
    ["a leading zero", '{"a":01}'],
    ["a plus sign", '{"a":+1}'],
    ["half a character", '{"a":"\\ud800"}'],
    ["a bare control character", '{"a":"\n"}'],
    ["an unknown escape", '{"a":"\\x"}'],
    ["no number", '{"a":NaN}'],
    ["a trailing comma", '{"a":1,}'],
    ["trailing text", '{"a":1} x'],
    ["a text cut short", '{"a":1'],
    ["a string cut short", '{"a":"b'],
    ["an escape cut short", '{"a":"b\\'],
    ["no object", "[]"],
    ["nothing", ""],
    ["a byte order mark", "\ufeff{}"],
    ["a hundred levels", `{"a":${"[".repeat(100)}${"]".repeat(100)}}`],
    ["a million brackets", `{"a":${"[".repeat(1e6)}`],
  ])("refuses %s", (_, text) => {
    expect(() => parseJsonObject(text, "sample")).toThrow(expect.objectContaining({ code: "JSON_INVALID" }));
  });

  test("keeps large integers that a double holds", () => {
    expect(parseJsonObject(`{"a":${2 ** 60},"b":-0.5e-3}`, "sample")).toEqual({ a: 2 ** 60, b: -0.5e-3 });
  });

  test("names the text and the place", () => {
    expect(() => parseJsonObject('{"a":1 "b":2}', "runs/config.json")).toThrow(
      'expected "," at character 7 of runs/config.json, got "\\"b\\":2}"',
    );
  });
});
