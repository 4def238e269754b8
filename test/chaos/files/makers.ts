import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { crc32, deflateSync, gzipSync } from "node:zlib";
import * as arrow from "apache-arrow";
import { parquetWriteFile } from "hyparquet-writer";
import { encodeManifest } from "../../../src/library/checkpoint/format/manifest.ts";
import { layOut } from "../../../src/library/checkpoint/format/safetensors-header.ts";
import { IndexedWriter } from "../../../src/library/data/index.ts";
import { writeNpy } from "../../../src/library/data/megatron/numpy/npy.ts";
import { miniGpt2 } from "../../data/mini-gpt2.ts";
import { flacOf } from "../../fixtures/records/flac-of.ts";
import { tarOf } from "../../fixtures/records/tar-of.ts";
import type { Chance } from "../chance.ts";
import { changed, changedBytes, hostileValue, patterns, written } from "./hostile.ts";
import { archiveOf, hostilePickle } from "./pickles.ts";

/** A hostile file that was made: what a reader is given, and what of it is wrong, in words. */
export interface Made {
  readonly path: string;
  readonly what: string;
}

/** Makes a hostile file of one kind in an empty folder. @param index - every so many are no files at all */
type Maker = (folder: string, chance: Chance, index: number) => Made | Promise<Made>;

/** Makes something that is no regular file, which is refused at once. @returns undefined if a file is to be made instead */
function noFile(path: string, chance: Chance, index: number): Made | undefined {
  if (index % 8 !== 0) return undefined;
  const what = chance.pick([
    "a pipe",
    "/dev/zero",
    "a folder",
    "a terabyte of nothing",
    "nothing",
    "noise",
    "a loop of links",
  ]);
  if (what === "a pipe") execFileSync("mkfifo", [path]);
  else if (what === "/dev/zero") symlinkSync("/dev/zero", path);
  else if (what === "a loop of links") symlinkSync(path, path);
  else if (what === "a folder") mkdirSync(path);
  else {
    writeFileSync(
      path,
      what === "noise" ? Buffer.from(Array.from({ length: 3_000 }, () => chance.below(256))) : "",
    );
    if (what === "a terabyte of nothing") truncateSync(path, 2 ** 40);
  }
  return { path, what };
}

/** A maker of one file of JSON like `example`. */
function json(name: string, example: (chance: Chance) => unknown): Maker {
  return (folder, chance, index) => {
    const path = join(folder, name);
    const none = noFile(path, chance, index);
    if (none !== undefined) return none;
    const text = written(changed(example(chance), chance));
    writeFileSync(path, text);
    return { path, what: `${name} ${text.slice(0, 200)}` };
  };
}

/** A maker of one file of bytes like those of `example`. */
function binary(name: string, example: (chance: Chance) => Buffer): Maker {
  return (folder, chance, index) => {
    const path = join(folder, name);
    const none = noFile(path, chance, index);
    if (none !== undefined) return none;
    const bytes = chance.below(3) === 0 ? example(chance) : changedBytes(example(chance), chance);
    writeFileSync(path, bytes);
    return { path, what: `${name} ${bytes.toString("base64", 0, 240)}` };
  };
}

/** A maker of one file of lines like those of `example`. */
function lines(name: string, example: readonly string[]): Maker {
  return binary(name, (chance) => {
    const made = [...example];
    for (let count = 1 + chance.below(4); count > 0; count--)
      made.splice(
        chance.below(made.length),
        chance.below(2),
        `${chance.pick(made)}${chance.pick(["\t", '"', "\0", "=", "[[", "{".repeat(100)])}${written(hostileValue(chance))}`,
      );
    return Buffer.from(made.join("\n").repeat(chance.pick([1, 1, 50])));
  });
}

const tinyGpt2 = {
  architectures: ["GPT2LMHeadModel"],
  model_type: "gpt2",
  n_layer: 1,
  n_embd: 4,
  n_head: 2,
  n_positions: 4,
  vocab_size: 8,
  activation_function: "gelu_new",
  id2label: { "0": "a" },
  bos_token_id: null,
};
const families = [
  tinyGpt2,
  {
    architectures: ["LlamaForCausalLM"],
    model_type: "llama",
    hidden_size: 8,
    num_hidden_layers: 1,
    num_attention_heads: 2,
    intermediate_size: 8,
    vocab_size: 8,
    max_position_embeddings: 8,
    rope_scaling: { rope_type: "linear", factor: 2 },
    hidden_act: "silu",
  },
  {
    architectures: ["BertForMaskedLM"],
    model_type: "bert",
    hidden_size: 8,
    num_hidden_layers: 1,
    num_attention_heads: 2,
    intermediate_size: 8,
    vocab_size: 8,
    num_labels: 3,
  },
  {
    architectures: ["T5ForConditionalGeneration"],
    model_type: "t5",
    d_model: 8,
    d_kv: 4,
    d_ff: 8,
    num_layers: 1,
    num_heads: 2,
    vocab_size: 8,
    feed_forward_proj: "relu",
  },
  {
    architectures: ["CLIPModel"],
    model_type: "clip",
    text_config: { hidden_size: 8, num_hidden_layers: 1 },
    vision_config: { hidden_size: 8, image_size: 8, patch_size: 4 },
  },
  {
    architectures: ["Wav2Vec2ForCTC"],
    model_type: "wav2vec2",
    hidden_size: 8,
    conv_dim: [4, 4],
    conv_stride: [2, 2],
    conv_kernel: [3, 3],
    num_hidden_layers: 1,
  },
];

const tensors = [
  { name: "transformer.wte.weight", dtype: "F32", shape: [8, 4] },
  { name: "transformer.h.0.ln_1.weight", dtype: "F32", shape: [4] },
] as const;

function weights(): Buffer {
  const { header } = layOut(tensors, { format: "pt" });
  return Buffer.concat([header, Buffer.alloc(4 * 36)]);
}

/** Any header, behind its length. */
function hostileWeights(chance: Chance): Buffer {
  const entry = { dtype: "F32", shape: [2], data_offsets: [0, 8] };
  const text = written(
    changed({ __metadata__: { format: "pt" }, a: entry, b: { ...entry, data_offsets: [8, 16] } }, chance),
  );
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(Buffer.byteLength(text)));
  return Buffer.concat([length, Buffer.from(text), Buffer.alloc(16)]);
}

const modelFolder: Maker = (folder, chance, index) => {
  const config = join(folder, "config.json");
  const none = noFile(config, chance, index);
  const text = written(
    chance.below(3) === 0 ? chance.pick(families) : changed(chance.pick(families), chance),
  );
  if (none === undefined) writeFileSync(config, text);
  const kind = chance.below(4);
  if (kind === 0) {
    const map = { weight_map: { "transformer.wte.weight": "model-00001-of-00001.safetensors" } };
    writeFileSync(join(folder, "model.safetensors.index.json"), written(changed(map, chance)));
    writeFileSync(join(folder, "model-00001-of-00001.safetensors"), weights());
  } else if (kind === 1)
    writeFileSync(
      join(folder, "pytorch_model.bin"),
      archiveOf({ "a/data.pkl": hostilePickle(chance), "a/data/0": Buffer.alloc(8) }),
    );
  else writeFileSync(join(folder, "model.safetensors"), kind === 2 ? weights() : hostileWeights(chance));
  if (chance.below(3) === 0)
    writeFileSync(join(folder, "generation_config.json"), written(hostileValue(chance)));
  return { path: folder, what: none?.what ?? text.slice(0, 300) };
};

const manyReplacements = Array.from({ length: 12 }, () => ({
  type: "Replace",
  pattern: { String: "a" },
  content: "a".repeat(10),
}));

/** A normalizer, a pre-tokenizer or a decoder that costs as much as it can. */
function hostileStep(chance: Chance): unknown {
  const pattern = () =>
    chance.pick<unknown>([
      { Regex: chance.pick(patterns) },
      { String: chance.pick(["a", " ", "", "ab"]) },
      {},
      null,
    ]);
  const makers: readonly (() => unknown)[] = [
    () => ({
      type: "Replace",
      pattern: pattern(),
      content: chance.pick<unknown>(["", "a".repeat(300), "$`$`$&", "aa", null]),
    }),
    () => ({
      type: "Sequence",
      normalizers: manyReplacements,
      pretokenizers: manyReplacements,
      decoders: manyReplacements,
    }),
    () => ({
      type: "Split",
      pattern: pattern(),
      behavior: chance.pick(["Isolated", "Removed", "constructor"]),
      invert: chance.below(2) === 0,
    }),
    () => ({ type: "Prepend", prepend: chance.pick<unknown>(["\u2581", "a".repeat(100_000), 7]) }),
    () => ({
      type: "Precompiled",
      precompiled_charsmap: chance.pick([
        "",
        "AAAA",
        "////fw==",
        Buffer.from([0, 0, 0, 0x40, 1, 2, 3]).toString("base64"),
        "A".repeat(100_000),
      ]),
    }),
    () => ({ type: "FixedLength", length: chance.pick<unknown>([0, -1, 1, null, 1e9]) }),
    () => ({
      type: "Metaspace",
      replacement: chance.pick(["", "\u2581", "a".repeat(200)]),
      str_rep: "a".repeat(200),
      prepend_scheme: "constructor",
    }),
    () => ({ type: "Strip", content: " ", start: 1e9, stop: 1e9, strip_left: true, strip_right: true }),
    () => ({ type: "BPEDecoder", suffix: "" }),
    () => deepSequence(chance.pick(["normalizers", "pretokenizers", "decoders"])),
    () => ({
      type: chance.pick([
        "NFKD",
        "Nmt",
        "BertNormalizer",
        "Whitespace",
        "ByteLevel",
        "CTC",
        "constructor",
        "__proto__",
      ]),
    }),
  ];
  return chance.pick(makers)();
}

function deepSequence(list: "normalizers" | "pretokenizers" | "decoders"): unknown {
  let step: unknown = { type: "Fuse" };
  for (let depth = 0; depth < 40; depth++) step = { type: "Sequence", [list]: [step] };
  return step;
}

const letters = Object.fromEntries(
  [..."abcdefghijklmnopqrstuvwxyz \u2581!'"].map((letter, id) => [letter, id]),
);
const unigram = {
  type: "Unigram",
  unk_id: 0,
  vocab: [["<unk>", 0], ...Object.keys(letters).map((letter) => [letter, -1]), ["\u2581the", -0.5]],
};

function exampleTokenizer(chance: Chance): unknown {
  const plain = {
    version: "1.0",
    added_tokens: [{ id: 40, content: "<s>", special: true, lstrip: true }],
    normalizer: null,
    pre_tokenizer: null,
    post_processor: null,
    decoder: null,
  };
  const example = chance.pick<Record<string, unknown>>([
    miniGpt2,
    { ...plain, model: { type: "BPE", vocab: letters, merges: ["t h"], unk_token: "a" } },
    { ...plain, model: unigram },
    {
      ...plain,
      normalizer: { type: "BertNormalizer" },
      pre_tokenizer: { type: "BertPreTokenizer" },
      model: {
        type: "WordPiece",
        vocab: { ...letters, "[UNK]": 50 },
        unk_token: "[UNK]",
        continuing_subword_prefix: "##",
      },
    },
  ]);
  const part = chance.pick(["normalizer", "pre_tokenizer", "decoder", ""]);
  return part === "" ? example : { ...example, [part]: hostileStep(chance) };
}

/** A tokenizer of which, at times, only one step is hostile and all else is good. */
const tokenizer: Maker = (folder, chance, index) => {
  if (chance.below(2) === 0) return json("tokenizer.json", exampleTokenizer)(folder, chance, index);
  const path = join(folder, "tokenizer.json");
  const text = written(exampleTokenizer(chance));
  writeFileSync(path, text);
  return { path, what: text.slice(0, 600) };
};

const gpt2Files: Maker = (folder, chance, index) => {
  const made = json("vocab.json", () => miniGpt2.model.vocab)(folder, chance, index) as Made;
  writeFileSync(
    join(folder, "merges.txt"),
    chance.pick(["t h\nth e", "a", "a b c", "\u{FDFA} ".repeat(30_000), `a ${"b".repeat(100_000)}`]),
  );
  return { path: folder, what: made.what };
};

const checkpointFolder: Maker = (folder, chance, index) => {
  const path = join(folder, "manifest.json");
  const none = noFile(path, chance, index);
  if (none !== undefined) return { path: folder, what: none.what };
  const state = { step: 1, seed: 2, samplesConsumed: 3, job: { layers: 4 }, tokenizer: null };
  const slice = { file: "model.safetensors", entry: "a", offset: [0], shape: [2] };
  const files = new Map([
    ["model.safetensors", { sizeBytes: 80, chunkBytes: 64, crc32c: Uint32Array.of(1, 2) }],
  ]);
  const good = encodeManifest({
    state,
    files,
    tensors: new Map([["a", { dtype: "F32", shape: [2], slices: [slice] }]]),
  });
  const text = written(changed(JSON.parse(good), chance));
  writeFileSync(path, text);
  return { path: folder, what: text.slice(0, 200) };
};

const adapterFolder: Maker = (folder, chance, index) => {
  const config = {
    peft_type: "LORA",
    r: 2,
    lora_alpha: 4,
    target_modules: ["c_attn"],
    rank_pattern: { "h.0": 4 },
    modules_to_save: null,
    bias: "none",
    layers_to_transform: null,
  };
  const example = () =>
    chance.pick<unknown>([
      config,
      { ...config, target_modules: chance.pick(patterns) },
      { ...config, rank_pattern: { [chance.pick(patterns)]: 2 } },
      { peft_type: "IA3", target_modules: ["c_attn"], feedforward_modules: [] },
      {
        peft_type: "BOTTLENECK",
        bottleneck_dim: 2,
        non_linearity: chance.pick(["constructor", "__proto__", "relu"]),
      },
      { peft_type: "PROMPT_TUNING", num_virtual_tokens: chance.pick([2, 1e9]) },
      { peft_type: "PREFIX_TUNING", num_virtual_tokens: chance.pick([2, 1e9]), num_layers: 1e9 },
    ]);
  const made = json("adapter_config.json", example)(folder, chance, index) as Made;
  return { path: folder, what: made.what };
};

/** Folders of other programs, of which each has a file that names the latest step. */
const foreignFolder: Maker = (folder, chance, index) => {
  const name = chance.pick(["latest", "latest_checkpointed_iteration.txt"]);
  const none = noFile(join(folder, name), chance, index);
  const word = chance.pick(["global_step1", "release", "../../etc", "/dev", "1", "9".repeat(5_000), "\0"]);
  if (none === undefined) writeFileSync(join(folder, name), word);
  for (const step of ["global_step1", "iter_0000001/mp_rank_00", "release/mp_rank_00"])
    mkdirSync(join(folder, step), { recursive: true });
  writeFileSync(
    join(folder, "global_step1", "mp_rank_00_model_states.pt"),
    archiveOf({ "a/data.pkl": hostilePickle(chance), "a/data/0": Buffer.alloc(8) }),
  );
  for (const step of ["iter_0000001", "release"])
    writeFileSync(join(folder, step, "mp_rank_00", "model_optim_rng.safetensors"), hostileWeights(chance));
  const config = chance.pick<unknown>([
    tinyGpt2,
    { model_type: "gpt_neox", num_hidden_layers: 1e9 },
    { ...tinyGpt2, n_layer: 1e9 },
  ]);
  writeFileSync(
    join(folder, "config.json"),
    written(chance.below(2) === 0 ? config : changed(config, chance)),
  );
  return { path: folder, what: `${name}: ${none?.what ?? word.slice(0, 40)}` };
};

function chunk(name: string, content: Buffer): Buffer {
  const bytes = Buffer.alloc(12 + content.length);
  bytes.writeUInt32BE(content.length, 0);
  bytes.write(name, 4, "latin1");
  content.copy(bytes, 8);
  bytes.writeUInt32BE(crc32(bytes.subarray(4, 8 + content.length)), 8 + content.length);
  return bytes;
}

function picture(chance: Chance): Buffer {
  const [width, height] = chance.pick([
    [2, 2],
    [1, 1],
    [4_000, 4_000],
    [65_535, 65_535],
    [0, 5],
    [0x7fffffff, 2],
  ]) as [number, number];
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = 8;
  header[9] = chance.pick([0, 2, 3, 4, 6, 7]);
  const data = deflateSync(Buffer.alloc(chance.pick([14, 4, 16_004_000, 50_000_000])));
  const pieces =
    chance.below(2) === 0
      ? [data]
      : Array.from({ length: 2_000 }, (_, at) => data.subarray(at * 8, at * 8 + 8));
  return Buffer.concat([
    Buffer.from("89504e470d0a1a0a", "hex"),
    chunk("IHDR", header),
    ...pieces.map((each) => chunk("IDAT", each)),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function sound(chance: Chance): Buffer {
  const format = Buffer.alloc(16);
  format.writeUInt16LE(chance.pick([1, 3, 0xfffe]), 0);
  format.writeUInt16LE(chance.pick([1, 2, 0, 65_535]), 2);
  format.writeUInt32LE(16_000, 4);
  format.writeUInt16LE(chance.pick([8, 16, 24, 32, 12, 0]), 14);
  const part = (name: string, content: Buffer) => {
    const size = Buffer.alloc(4);
    size.writeUInt32LE(content.length);
    return Buffer.concat([Buffer.from(name), size, content]);
  };
  const body = Buffer.concat([
    Buffer.from("WAVE"),
    part("fmt ", format),
    part("data", Buffer.alloc(chance.pick([0, 2, 64_000]))),
  ]);
  return part("RIFF", body);
}

function idx(chance: Chance): Buffer {
  const header = Buffer.from([0, 0, 8, chance.pick([1, 3, 255])]);
  const sizes = Buffer.alloc(12);
  for (const at of [0, 4, 8]) sizes.writeUInt32BE(chance.pick([2, 28, 0xffffffff, 60_000]), at);
  const plain = Buffer.concat([header, sizes, Buffer.alloc(chance.pick([8, 1_568, 150_000_000]))]);
  return chance.below(3) === 0 ? plain.subarray(0, 100_000) : gzipSync(plain);
}

const parquetAt =
  (name: string): Maker =>
  (folder, chance, index) => {
    const example = join(folder, "example");
    const rows = Array.from({ length: 50 }, (_, row) => row);
    parquetWriteFile({
      filename: example,
      codec: chance.pick(["SNAPPY", "UNCOMPRESSED"]),
      columnData: [
        { name: "text", data: rows.map((row) => `text ${row}`), type: "STRING" },
        { name: "label", data: rows, type: "INT32" },
      ],
    });
    const bytes = readFileSync(example);
    return binary(name, () => bytes)(folder, chance, index);
  };

/** A tar of samples, some of them with sizes that are not theirs, under names that mean something to JavaScript or to a path. */
function tarOfSamples(chance: Chance): Buffer {
  const name = () => chance.pick(["a", "b/c", "__proto__", "../up", "constructor", "", "a".repeat(90)]);
  const files = Array.from({ length: 1 + chance.below(30) }, () => ({
    name: `${name()}.${chance.pick(["json", "cls", "txt", "jpg", "__proto__", "constructor"])}`,
    data: chance.pick(["{}", "1", "[", `${"[".repeat(5_000)}`, '{"__proto__":1}', "x".repeat(600)]),
    kind: chance.pick(["0", "0", "0", "x", "L", "2", "5", "S"]),
  }));
  return tarOf(files);
}

function arrowTable(chance: Chance): Buffer {
  const rows = Array.from({ length: 50 }, (_, row) => row);
  const table = arrow.tableFromArrays({
    text: rows.map((row) => `text ${row}`),
    label: Int32Array.from(rows),
  });
  return Buffer.from(arrow.tableToIPC(table, chance.pick(["file", "stream"])));
}

const npy: Maker = (folder, chance, index) => {
  const example = join(folder, "example");
  writeNpy(example, { shape: [2, 3], data: Int32Array.of(1, 2, 3, 4, 5, 6) });
  const text = readFileSync(example);
  const header = chance.pick([
    "'shape': (2, 3)",
    "'shape': (99999999999, 9)",
    `'shape': (${"1,".repeat(5_000)})`,
    "'shape': (-1, -6)",
  ]);
  const bytes = Buffer.from(text.toString("latin1").replace("'shape': (2, 3)", header), "latin1");
  return binary("data.npy", () => bytes)(folder, chance, index);
};

const indexed: Maker = (folder, chance, index) => {
  const writer = new IndexedWriter(join(folder, "data"), "int32", chance.pick(["mmap", "cached"]));
  writer.addSequence(Int32Array.of(1, 2, 3));
  writer.endDocument();
  writer.finish();
  const good = readFileSync(join(folder, "data.idx"));
  const place = join(folder, "other");
  mkdirSync(place);
  copyFileSync(join(folder, "data.bin"), join(place, "data.bin"));
  const { what } = binary("data.idx", () => good)(place, chance, index) as Made;
  return { path: place, what };
};

const savedByTorch = ["state.pt", "program.pt", "legacy.pt"].map((name) =>
  readFileSync(fileURLToPath(new URL(`../../fixtures/torch/${name}`, import.meta.url))),
);

const torchFile = binary("model.pt", (chance) =>
  chance.below(3) === 0
    ? chance.pick(savedByTorch)
    : archiveOf({
        "a/data.pkl": hostilePickle(chance),
        "a/byteorder": Buffer.from("little"),
        "a/data/0": Buffer.alloc(8),
      }),
);

/** Makers of hostile files, by the kinds of `readers.ts`. */
export const makers: Readonly<Record<string, Maker>> = {
  "options.toml": lines("options.toml", [
    "ranks = 2",
    "[checkpoint]",
    'every = "10m"',
    'maxFileSize = "64MB"',
    "a.b.c = 1",
    "[[x]]",
  ]),
  "options.json": json("options.json", () => ({
    ranks: 2,
    checkpoint: { every: "10m" },
    offload: { limit: "64MB" },
  })),
  registry: lines("hub.toml", [
    "[models]",
    'bert = "models/bert"',
    "[data]",
    '"glue/mrpc" = "data"',
    '"__proto__" = "x"',
  ]),
  "model folder": modelFolder,
  "tokenizer.json": tokenizer,
  "vocab.json and merges.txt": gpt2Files,
  "vocab.txt": lines("vocab.txt", ["[UNK]", "[CLS]", "a", "b", "##c", "constructor", "__proto__"]),
  safetensors: binary("model.safetensors", (chance) =>
    chance.below(2) === 0 ? weights() : hostileWeights(chance),
  ),
  "torch file": torchFile,
  checkpoint: checkpointFolder,
  "adapter folder": adapterFolder,
  "converted folder": foreignFolder,
  "json lines": lines("data.jsonl", ['{"text":"a","label":1}', '{"text":"b","label":0}']),
  table: lines("data.tsv", ["text\tlabel", "a\t1", "b\t0"]),
  conllu: lines("data.conllu", ["# a", "1\ta\t_\tNOUN\t_\t_\t0\troot\t_\t_", ""]),
  idx: binary("data.idx", idx),
  png: binary("picture.png", picture),
  wav: binary("sound.wav", sound),
  parquet: parquetAt("data.parquet"),
  "records of lines": lines("records.jsonl", ['{"text":"a","label":1}', '{"text":"b","label":0}']),
  "records of a tar": binary("records.tar", tarOfSamples),
  "records, packed": binary("packed.jsonl.gz", (chance) =>
    gzipSync(chance.below(4) === 0 ? Buffer.alloc(96 << 20) : Buffer.from('{"text":"a"}\n'.repeat(40))),
  ),
  "records of Parquet": parquetAt("records.parquet"),
  "records of Arrow": binary("records.arrow", arrowTable),
  "a photograph": binary("photograph.png", picture),
  "a packed sound": binary("sound.flac", () =>
    flacOf(Int16Array.from({ length: 3_000 }, (_, at) => at % 100)),
  ),
  npy,
  "indexed dataset": indexed,
};
