import { createHash } from "node:crypto";
import { Unpackr } from "msgpackr/pack";
import { encodeManifest, parseManifest } from "../../../src/checkpoint/manifest.ts";
import { layOut, parseHeader } from "../../../src/checkpoint/safetensors-header.ts";
import { parseJsonObject } from "../../../src/checkpoint/strict-json.ts";
import { CodecSet } from "../../../src/runtime/codec.ts";
import { FrameReader, frameHeader } from "../../../src/runtime/frame.ts";
import { blankRecord, checkPacket, readPacket, singlePacket } from "../../../src/runtime/packet.ts";
import { packControl } from "../../../src/runtime/process-orders.ts";
import { RecordType } from "../../../src/runtime/record.ts";
import type { Target } from "./target.ts";

const text = (value: string): Uint8Array => new TextEncoder().encode(value);
const maxFrameBytes = 1 << 16;

/** What attackers are known to try with JSON that a program believes. */
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

const runOfTells = 1 << 11;

const tensor = '"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}';

/** The parsers of files and messages. */
export const targets: readonly Target[] = [
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
    name: "manifest, sealed anew",
    sources: /checkpoint\/(manifest|json-cursor|slices|strict-json)/,
    corpus: [
      manifest(),
      ...hostileJson.map((json) => text(`{"sha256": "${"0".repeat(64)}",${json.slice(1)}`)),
    ],
    take: (input) => void parseManifest(sealed(input), "fuzz"),
    refusals: ["CHECKPOINT_DAMAGED", "JSON_INVALID"],
  },
  {
    name: "JSON of strangers",
    sources: /checkpoint\/(json-cursor|strict-json)/,
    corpus: hostileJson.map(text),
    take(input) {
      parseJsonObject(new TextDecoder().decode(input), "fuzz");
      if ("polluted" in {}) throw new Error("the prototype of all objects was changed");
    },
    refusals: ["JSON_INVALID"],
  },
  {
    name: "frames of a socket",
    sources: /runtime\/frame/,
    corpus: [
      Buffer.concat([frameHeader(3, 7, 0), Uint8Array.of(1, 2, 3), frameHeader(0, 7, 8)]),
      frameHeader(0xffff_ffff, 1, 0),
      frameHeader(1, 1, 8),
      frameHeader(0, 0, 0xffff_ffff),
    ],
    take(input) {
      const reader = new FrameReader(maxFrameBytes);
      // In pieces, as sockets bring them.
      const cut = (input[0] ?? 0) % 17;
      for (const piece of [input.subarray(0, cut), input.subarray(cut)]) {
        reader.read(piece, ({ bytes }) => {
          if (bytes.length > maxFrameBytes) throw new Error("a frame above the cap");
        });
      }
    },
    refusals: ["FRAME_INVALID"],
  },
  {
    name: "packed messages",
    sources: /runtime\/(packet|codec)/,
    corpus: [
      packControl({ kind: "ready" }),
      // A run of two billion messages.
      packControl([runOfTells, "go", 2 ** 31, 0] as never),
      packControl(
        singlePacket({
          ...blankRecord,
          type: RecordType.tell,
          kind: "go",
          body: { $codec: "x" },
        } as never) as never,
      ),
    ],
    take(input) {
      let packet: unknown;
      try {
        packet = new Unpackr({ sequential: true, moreTypes: true, useToJSON: false } as never).unpack(
          Buffer.from(input),
        );
      } catch {
        return; // the link ends the call: see `PackedLink`
      }
      const codecs = new CodecSet([]);
      readPacket(checkPacket(packet), ({ body }) => void codecs.decode(body));
    },
    refusals: ["FRAME_INVALID", "MESSAGE_UNSENDABLE"],
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

/** With the seal that fits, so that what lies behind it is reached: any writer can seal. */
function sealed(input: Uint8Array): Uint8Array {
  const found = new TextDecoder().decode(input);
  const zeros = found.replace(/^(\{\s{0,8}"sha256": ")[0-9a-f]{64}/, `$1${"0".repeat(64)}`);
  const sum = createHash("sha256").update(zeros).digest("hex");
  return text(zeros.replace(/^(\{\s{0,8}"sha256": ")0{64}/, `$1${sum}`));
}
