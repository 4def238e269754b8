import { join } from "node:path";
import { TroupeError } from "../../../src/errors/index.ts";
import { maxFileBytes, readBounded } from "../../../src/errors/untrusted/index.ts";
import { commandSchema, fileOptions } from "../../../src/job/options/index.ts";
import {
  Checkpoint,
  HuggingFaceFolder,
  LocalFolder,
  SafetensorsFile,
  TorchFile,
} from "../../../src/library/checkpoint/index.ts";
import { openSource } from "../../../src/library/convert/index.ts";
import {
  decodePicture,
  decodeSound,
  IndexedDataset,
  loadGpt2Tokenizer,
  loadTokenizer,
  loadWordPiece,
  openIdx,
  openRecords,
  readConllu,
  readJsonLines,
  readParquet,
  readPng,
  readTable,
  readWav,
  type Tokenizer,
} from "../../../src/library/data/index.ts";
import { readNpy } from "../../../src/library/data/megatron/numpy/npy.ts";
import { applyDelta, deltaFrom } from "../../../src/library/deltas/index.ts";
import { findRegistry } from "../../../src/library/hub/index.ts";
import {
  autoModel,
  configOfFile,
  GPT2LMHeadModel,
  pretrained,
  taskOf,
} from "../../../src/library/models/index.ts";

/** Texts to encode by an untrusted tokenizer: words, and texts that are hard for patterns. */
const texts = [
  "The quick brown fox, 12345 times!\n\n  It's  'we'll' Ünïcödé \u2581 \u{1F600}\u{1F600} \u4E00\u4E8C",
  "a".repeat(2_000),
  " ".repeat(2_000),
  `${"ab ".repeat(500)}!`,
  "\u{FDFA}".repeat(300),
];

function use(tokenizer: Tokenizer): void {
  for (const text of texts) tokenizer.decode([...tokenizer.encode(text)].slice(0, 4_000));
}

/** How each kind of file is read, as the product reads it: a `path` is a file's, or a folder's where it is in one. */
export const readers: Readonly<Record<string, (path: string) => unknown>> = {
  "options.toml": (path) => fileOptions(path, commandSchema),
  "options.json": (path) => fileOptions(path, commandSchema),
  registry: (path) => findRegistry(".", { TROUPE_HUB: path }),
  "model folder": readModel,
  "tokenizer.json": async (path) => use(await loadTokenizer(path)),
  "vocab.json and merges.txt": async (path) =>
    use(
      await loadGpt2Tokenizer({ vocabPath: join(path, "vocab.json"), mergesPath: join(path, "merges.txt") }),
    ),
  "vocab.txt": async (path) => use(await loadWordPiece(path, { lowercase: true })),
  safetensors: async (path) => {
    await using file = await SafetensorsFile.open(path);
    for (const name of [...file.tensors.keys()].slice(0, 4)) await file.read(name);
  },
  "torch file": async (path) => {
    await using file = await TorchFile.open(path);
    for (const name of [...file.tensors.keys()].slice(0, 4)) await file.read(name);
  },
  checkpoint: async (path) => {
    await using checkpoint = await Checkpoint.open(await new LocalFolder(path).open(""));
    return checkpoint.state;
  },
  "adapter folder": (path) => {
    const model = new GPT2LMHeadModel({ n_layer: 1, n_embd: 8, n_head: 2, vocab_size: 16, n_positions: 8 });
    applyDelta(model, deltaFrom(path));
  },
  "converted folder": async (path) => {
    const source = await openSource(path, {});
    await source.close();
  },
  "json lines": readJsonLines,
  table: readTable,
  conllu: readConllu,
  idx: async (path) => {
    const { shape, rows } = await openIdx(path);
    return rows(0, Math.min(1, shape[0] ?? 0));
  },
  png: readPng,
  wav: readWav,
  parquet: readParquet,
  "records of lines": readAsRecords,
  "records of a tar": readAsRecords,
  "records, packed": readAsRecords,
  "records of Parquet": readAsRecords,
  "records of Arrow": readAsRecords,
  "a photograph": async (path) =>
    decodePicture(await readBounded(path, maxFileBytes.picture).catch(refuse), path),
  "a packed sound": async (path) =>
    decodeSound(await readBounded(path, maxFileBytes.picture).catch(refuse), path),
  npy: readNpy,
  "indexed dataset": (path) => {
    using data = IndexedDataset.open(join(path, "data"));
    return data.length > 0 && data.get(0);
  },
};

async function readAsRecords(path: string): Promise<void> {
  const records = await openRecords(path, {
    cacheDir: join(path, "../cache"),
    bad: "leave-out",
    tell: () => {},
  });
  for (let index = 0; index < Math.min(100, records.length); index++) await records.at(index);
}

/** The reader that precedes these decoders refuses what is no file in words of its own. */
function refuse(cause: Error): never {
  throw new TroupeError("DATA_UNREADABLE", { where: "data", expected: "a file", got: cause.message });
}

async function readModel(path: string): Promise<void> {
  await using folder = await HuggingFaceFolder.open(path);
  const task = taskOf(folder.config) ?? "causal_lm";
  const model = autoModel(task, configOfFile(folder.config));
  pretrained(model, new Map(folder.names.map((name) => [name, folder.entry(name)])));
}
