import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TroupeError } from "../../src/errors/index.ts";
import {
  encodeManifest,
  type Manifest,
  parseManifest,
} from "../../src/library/checkpoint/format/manifest.ts";
import { refusal } from "./refusal.ts";

const manifest: Manifest = {
  state: {
    step: 500,
    seed: 1337,
    samplesConsumed: 6000,
    optimizer: { numUpdates: 499 },
    job: { layers: 4, text: "é\n" },
    tokenizer: null,
  },
  files: new Map([
    ["model.safetensors", { sizeBytes: 100, chunkBytes: 64, crc32c: Uint32Array.of(1, 0xffffffff) }],
    ["config.json", { sizeBytes: 0, chunkBytes: 64, crc32c: new Uint32Array(0) }],
  ]),
  tensors: new Map([
    [
      "h.0.weight",
      {
        dtype: "F32",
        shape: [3, 2],
        slices: [
          { file: "model.safetensors", entry: "h.0.weight[0,0]", offset: [0, 0], shape: [2, 2] },
          { file: "model.safetensors", entry: "h.0.weight[2,0]", offset: [2, 0], shape: [1, 2] },
        ],
      },
    ],
  ]),
};

const body = `{
  "sha256": "${"0".repeat(64)}",
  "formatVersion": 2,
  "step": 500,
  "seed": 1337,
  "samplesConsumed": 6000,
  "optimizer": {"numUpdates":499},
  "job": {"layers":4,"text":"é\\n"},
  "tokenizer": null,
  "files": {
    "model.safetensors": {"sizeBytes":100,"chunkBytes":64,"crc32c":[1,4294967295]},
    "config.json": {"sizeBytes":0,"chunkBytes":64,"crc32c":[]}
  },
  "tensors": {
    "h.0.weight": {"dtype":"F32","shape":[3,2],"slices":[{"file":"model.safetensors","entry":"h.0.weight[0,0]","offset":[0,0],"shape":[2,2]},{"file":"model.safetensors","entry":"h.0.weight[2,0]","offset":[2,0],"shape":[1,2]}]}
  }
}
`;

/** A text with its SHA-256 filled in, whatever else it says: what a hostile writer can make. */
function sealed(text: string): Uint8Array {
  const sum = createHash("sha256").update(text).digest("hex");
  return Buffer.from(text.replace("0".repeat(64), sum));
}

const refused = (text: string) => refusal(() => parseManifest(sealed(text), "m"));

describe("a manifest", () => {
  test("is text that tells what a folder holds, sealed by the SHA-256 of itself", () => {
    expect(encodeManifest(manifest)).toBe(Buffer.from(sealed(body)).toString());
  });

  test("gives back what was written, members of the state that it does not know too", () => {
    const more = { ...manifest, state: { ...manifest.state, epoch: 3, metadata: { by: "me" } } };
    expect(parseManifest(Buffer.from(encodeManifest(more)), "m")).toEqual(more);
  });

  test("a manifest with any bit flipped is refused", async () => {
    const good = sealed(body);
    for (let bit = 0; bit < good.length * 8; bit++) {
      const bad = Uint8Array.from(good);
      bad[bit >> 3]! ^= 1 << (bit & 7);
      expect((await refusal(() => parseManifest(bad, "m"))).code).toBe("CHECKPOINT_DAMAGED");
    }
  });

  test("cut anywhere is refused, and so is another text in UTF-8 of the same characters", async () => {
    const good = sealed(body);
    for (let length = 0; length < good.length; length += 13) {
      expect((await refusal(() => parseManifest(good.subarray(0, length), "m"))).code).toBe(
        "CHECKPOINT_DAMAGED",
      );
    }
    const bad = Buffer.concat([Buffer.from("\ufeff"), good]);
    expect((await refusal(() => parseManifest(bad, "m"))).code).toBe("CHECKPOINT_DAMAGED");
  });

  // Each a true seal over a lie.
  test.each([
    ["of another version", '"formatVersion": 2', '"formatVersion": 3', "formatVersion 2"],
    ["without tensors", /"tensors": [\s\S]*/, '"x": 0\n}\n', "formatVersion, files and tensors"],
    ["with a key twice", '"seed": 1337', '"seed": 1337, "seed": 1', "each key once"],
    ["with the key __proto__", '"seed": 1337', '"seed": 1337, "__proto__": 1', "another key"],
    ["with an integer that is rounded", '"seed": 1337', '"seed": 9007199254740993', "a double holds"],
    ["with a step below zero", '"step": 500', '"step": -1', "a whole number as step"],
    ["with losses that are none", '"seed": 1337', '"seed": 1337, "recentLosses": [2, "x"]', "recentLosses"],
    ["without a step", '"step": 500,', "", "a whole number as step"],
    ["whose file leads out", '"model.safetensors": {', '"../model.safetensors": {', "a plain file name"],
    ["whose file is absolute", '"model.safetensors": {', '"/etc/passwd": {', "a plain file name"],
    ["with a checksum missing", "[1,4294967295]", "[1]", "a checksum for each chunk"],
    ["with a checksum beyond 32 bits", "4294967295", "4294967296", "a checksum for each chunk"],
    ["with chunks of no size", '"chunkBytes":64,"crc32c":[]', '"chunkBytes":0,"crc32c":[]', "chunkBytes"],
    [
      "with chunks beyond memory",
      '"chunkBytes":64,"crc32c":[]',
      '"chunkBytes":1e12,"crc32c":[]',
      "a whole number",
    ],
    ["with a member of a file that nobody knows", '"sizeBytes":0', '"mode":0', '"sizeBytes", "chunkBytes"'],
    ["with a slice in a file that it does not list", '"file":"model', '"file":"other', "a known file"],
    ["with a slice beyond the tensor", '"offset":[2,0]', '"offset":[3,0]', "slices within [3,2]"],
    ["with a slice of another rank", '"offset":[2,0]', '"offset":[2]', "slices within [3,2]"],
    ["with slices that overlap", '"offset":[2,0]', '"offset":[1,0]', "hold each element"],
    ["with a hole between slices", '"shape":[2,2]', '"shape":[1,2]', "hold each element"],
    ["with an unknown dtype", '"F32"', '"F31"', "a dtype and a shape"],
    ["with a shape beyond 2^53", '"shape":[3,2],"s', '"shape":[4294967296,4294967296],"s', "a dtype and"],
    ["with seventeen dimensions", '"shape":[3,2],"s', `"shape":[${Array(17).fill(1)}],"s`, "at most 16"],
    ["with a negative offset", '"offset":[2,0]', '"offset":[-1,0]', "a whole number from 0"],
    ["too deep", '"numUpdates":499', `"a":${"[".repeat(70)}${"]".repeat(70)}`, "at most 64 levels"],
  ])("%s is refused, though sealed", async (_, from, to, expected) => {
    const text = body.replace(from, to);
    expect(text).not.toBe(body);
    const error = await refused(text);
    expect(["CHECKPOINT_DAMAGED", "JSON_INVALID"]).toContain(error.code);
    expect(error.message).toContain(expected);
  });

  test("a manifest with random edits, though sealed, is read or refused with an error of ours", () => {
    const tokens = body.match(/"[^"]*"|[[\]{},:]|\d+|\s+/g) ?? [];
    const edit = fc.record({
      at: fc.nat(tokens.length - 1),
      to: fc.oneof(fc.constantFrom(...tokens, "", "-1", "1e400", "null", "{}", "[[]]"), fc.string()),
    });
    fc.assert(
      fc.property(fc.array(edit, { minLength: 1, maxLength: 3 }), (edits) => {
        const edited = [...tokens];
        for (const { at, to } of edits) edited[at] = to;
        try {
          parseManifest(sealed(edited.join("")), "m");
        } catch (error) {
          if (!(error instanceof TroupeError)) throw error;
        }
      }),
      { seed: 4, numRuns: 2000 },
    );
  });
});
