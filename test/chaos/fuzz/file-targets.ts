import { createHash } from "node:crypto";
import { join } from "node:path";
import { encodeManifest, parseManifest } from "../../../src/library/checkpoint/format/manifest.ts";
import { PickleCut, readPickle } from "../../../src/library/checkpoint/format/pickle.ts";
import { layOut, parseHeader } from "../../../src/library/checkpoint/format/safetensors-header.ts";
import { parseJsonObject } from "../../../src/library/checkpoint/format/strict-json.ts";
import { filesOf } from "../../../src/library/checkpoint/hugging-face.ts";
import type { Target } from "./target.ts";

const text = (value: string): Uint8Array => new TextEncoder().encode(value);

/** Known attacks by JSON on programs that trust it. */
const hostileJson: readonly string[] = [
  '{"a":1,"a":2}',
  '{"__proto__":{"polluted":true}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  '{"a":9007199254740993}',
  '{"a":1e400,"b":-0,"c":0.1}',
  `${'{"a":'.repeat(70)}1${"}".repeat(70)}`,
  `${"[".repeat(5_000)}`,
  '{"../../etc/passwd":1,"a\\u0000b":2}',
  '{"a":"\\ud800"}',
];

const pickled = (value: string): Uint8Array => Buffer.from(value, "latin1");

const tensor = '"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}';

/** The parsers of files. */
export const fileTargets: readonly Target[] = [
  {
    name: "safetensors header",
    sources: /checkpoint\/(safetensors-header|json-cursor)/,
    corpus: [
      Buffer.from(layOut([{ name: "a", dtype: "F32", shape: [2] }], { format: "pt" }).header.subarray(8)),
      ...[
        `{${tensor},"b":{"dtype":"BF16","shape":[],"data_offsets":[8,10]}}`,
        `{${tensor},${tensor}}`,
        '{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}}',
        '{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}',
        '{"a":{"dtype":"F4","shape":[1],"data_offsets":[0,1]},"__metadata__":{"k":"v"}}',
        ...hostileJson,
      ].map(text),
    ],
    take: (input) => void parseHeader(new TextDecoder().decode(input), 8, "fuzz"),
    refusals: ["SAFETENSORS_INVALID", "JSON_INVALID"],
  },
  {
    name: "pickle of torch.save",
    sources: /checkpoint\/format\/pickle/,
    corpus: [
      "\x80\x02}q\x00(X\x01\x00\x00\x00aK\x01X\x01\x00\x00\x00bG?\xf0\x00\x00\x00\x00\x00\x00u.",
      "\x80\x02ccollections\nOrderedDict\n)R(U\x01wctorch._utils\n_rebuild_tensor_v2\n((U\x07storagectorch\nFloatStorage\nU\x010U\x03cpuK\x04tQK\x00K\x04\x85K\x01\x85\x89NtRu.",
      "\x80\x02]q\x00(h\x00]a\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19e.",
      "\x80\x02cos\nsystem\nU\x04true\x85R.",
      "\x80\x02(((((ttttt}N\x88\x89}sb.",
    ].map(pickled),
    take(input) {
      try {
        readPickle(input, 0, { path: "fuzz", names: (name) => name.startsWith("torch.") });
      } catch (error) {
        if (!(error instanceof PickleCut)) throw error;
      }
    },
    refusals: ["TORCH_FILE"],
  },
  {
    name: "manifest, sealed again",
    sources: /checkpoint\/(manifest|json-cursor|slices|strict-json)/,
    corpus: [
      manifest(),
      ...hostileJson.map((json) => text(`{"sha256": "${"0".repeat(64)}",${json.slice(1)}`)),
    ],
    take: (input) => void parseManifest(sealed(input), "fuzz"),
    refusals: ["CHECKPOINT_DAMAGED", "JSON_INVALID"],
  },
  {
    name: "untrusted JSON",
    sources: /checkpoint\/(json-cursor|strict-json)/,
    corpus: hostileJson.map(text),
    take(input) {
      parseJsonObject(new TextDecoder().decode(input), "fuzz");
      if ("polluted" in {}) throw new Error("the prototype of all objects was changed");
    },
    refusals: ["JSON_INVALID"],
  },
  {
    name: "index of a Hugging Face folder",
    sources: /checkpoint\/(hugging-face|json-cursor|strict-json|manifest)/,
    corpus: [
      '{"metadata":{"total_size":16},"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}}',
      '{"weight_map":{"a":"../../etc/passwd","b":"/etc/passwd","c":"x/../y.safetensors","d":".","e":""}}',
      '{"weight_map":{"a":"model\\u0000.safetensors","b":"C:\\\\x","c":"\\u2025/x"}}',
      '{"weight_map":["model.safetensors"]}',
      '{"weight_map":{"__proto__":"model.safetensors"}}',
      '{"weight_map":{"a":{"b":1},"c":null,"d":7}}',
      ...hostileJson,
    ].map(text),
    take(input) {
      const files = filesOf(parseJsonObject(new TextDecoder().decode(input), "fuzz"), "fuzz");
      for (const name of files.keys()) {
        if (join("/folder", name) !== `/folder/${name}` || /[\\/\0]/.test(name))
          throw new Error(`a name that leads elsewhere: ${JSON.stringify(name)}`);
      }
    },
    refusals: ["HUGGING_FACE_FOLDER", "JSON_INVALID"],
  },
];

function manifest(): Uint8Array {
  const state = { step: 1, seed: 2, samplesConsumed: 3, job: { layers: 4 }, tokenizer: null };
  const slice = { file: "model.safetensors", entry: "a", offset: [0], shape: [2] };
  const files = new Map([
    ["model.safetensors", { sizeBytes: 80, chunkBytes: 64, crc32c: Uint32Array.of(1, 2) }],
  ]);
  return text(
    encodeManifest({
      state,
      files,
      tensors: new Map([["a", { dtype: "F32", shape: [2], slices: [slice] }]]),
    }),
  );
}

/** Seals a manifest, so that the parser behind the seal is reached: any writer can seal. */
function sealed(input: Uint8Array): Uint8Array {
  const found = new TextDecoder().decode(input);
  const zeros = found.replace(/^(\{\s{0,8}"sha256": ")[0-9a-f]{64}/, `$1${"0".repeat(64)}`);
  const sum = createHash("sha256").update(zeros).digest("hex");
  return text(zeros.replace(/^(\{\s{0,8}"sha256": ")0{64}/, `$1${sum}`));
}
