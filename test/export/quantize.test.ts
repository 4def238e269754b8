import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { scope, tensor } from "../../src/compute/tensor/index.ts";
import { ggufTypes } from "../../src/library/export/gguf/export-gguf.ts";

/** Digests of what ggml's own code makes of the same numbers: make-quantized.py. */
const expected: Readonly<Record<string, string>> = JSON.parse(
  readFileSync(new URL("quantized.json", import.meta.url), "utf8"),
);

function numbers(kind: string): Float32Array {
  let state = 7;
  return Float32Array.from({ length: 64 * 256 }, (_, place) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const value = (state >>> 8) / 2 ** 23 - 1;
    if (kind === "outliers" && place % 37 === 0) return value * 64;
    if (kind === "positive") return Math.abs(value);
    if (kind === "constant") return ((Math.floor(place / 32) % 5) - 2) / 4;
    return value;
  });
}

it.each(Object.keys(expected))("makes the bits that ggml makes: %s", (name) => {
  const [type = "", , kind = ""] = name.split(" ");
  const { encode } = ggufTypes[type as keyof typeof ggufTypes];
  const bytes = scope(() => encode(tensor(numbers(kind))));
  expect(createHash("sha256").update(bytes).digest("hex")).toBe(expected[name]);
});
