import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as arrow from "apache-arrow";
import { parquetWriteFile } from "hyparquet-writer";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Tensor } from "../../src/compute/tensor/index.ts";
import { Runtime, type RuntimeOptions } from "../../src/entries/index.ts";
import { pictureIn } from "../../src/job/tasks/examples/pictures.ts";
import { type AnyTask, taskNamed } from "../../src/job/tasks/index.ts";
import {
  type Batch,
  type Dataset,
  disposeBatch,
  loadWordPiece,
  openRecords,
} from "../../src/library/data/index.ts";
import { flacOf } from "../fixtures/records/flac-of.ts";
import { tarOf } from "../fixtures/records/tar-of.ts";

const root = mkdtempSync(join(tmpdir(), "troupe-media-"));
const before = process.env.TROUPE_CACHE;
beforeAll(() => {
  process.env.TROUPE_CACHE = join(root, "cache");
});
afterAll(() => {
  if (before === undefined) delete process.env.TROUPE_CACHE;
  else process.env.TROUPE_CACHE = before;
  rmSync(root, { recursive: true, force: true });
});

function write(folder: string, files: Readonly<Record<string, string | Uint8Array>>): string {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  return folder;
}

/** Bytes and path of a picture or recording, as `datasets` keeps both. */
interface Pair {
  readonly bytes: Uint8Array | null;
  readonly path: string;
}

/** A column of pictures or recordings, and one of labels or texts. */
type Columns = readonly [
  media: readonly [string, readonly Pair[]],
  said: readonly [string, readonly (number | string)[]],
];

function parquetOf(path: string, [[media, pairs], [said, values]]: Columns): void {
  mkdirSync(dirname(path), { recursive: true });
  const isText = typeof values[0] === "string";
  const text = { type: "BYTE_ARRAY", converted_type: "UTF8", repetition_type: "OPTIONAL" } as const;
  parquetWriteFile({
    filename: path,
    rowGroupSize: 2,
    schema: [
      { name: "schema", num_children: 2 },
      { name: media, repetition_type: "OPTIONAL", num_children: 2 },
      { name: "bytes", type: "BYTE_ARRAY", repetition_type: "OPTIONAL" },
      { name: "path", ...text },
      isText ? { name: said, ...text } : { name: said, type: "INT64", repetition_type: "OPTIONAL" },
    ],
    columnData: [
      { name: media, data: [...pairs] },
      { name: said, data: values.map((value) => (typeof value === "string" ? value : BigInt(value))) },
    ],
  });
}

/** A stream, as `save_to_disk` writes it. */
function arrowOf(path: string, [[media, pairs], [said, values]]: Columns): void {
  mkdirSync(dirname(path), { recursive: true });
  const pair = new arrow.Struct([
    new arrow.Field("bytes", new arrow.Binary(), true),
    new arrow.Field("path", new arrow.Utf8(), true),
  ]);
  const type = typeof values[0] === "string" ? new arrow.Utf8() : new arrow.Int64();
  const column = values.map((value) => (typeof value === "string" ? value : BigInt(value)));
  const table = new arrow.Table({
    [media]: arrow.vectorFromArray(pairs as unknown as never[], pair as never),
    [said]: arrow.vectorFromArray(column as never[], type as never),
  });
  writeFileSync(path, arrow.tableToIPC(table, "stream"));
}

const NUM_PICTURES = 6;
const pictures: { readonly png: Buffer; readonly jpg: Buffer }[] = [];
beforeAll(async () => {
  for (let number = 0; number < NUM_PICTURES; number++) {
    const picture = sharp({
      create: { width: 4, height: 4, channels: 3, background: { r: 40 * number, g: 0, b: 9 } },
    });
    pictures.push({
      png: await picture.clone().png().toBuffer(),
      jpg: await picture.clone().jpeg({ quality: 100, chromaSubsampling: "4:4:4" }).toBuffer(),
    });
  }
});
const pngOf = (number: number) => pictures[number]?.png as Buffer;
const jpgOf = (number: number) => pictures[number]?.jpg as Buffer;

/** The numbers of the pictures of each shard. */
const shards = [
  [0, 1, 2, 3],
  [4, 5],
];
const columnsOf = (numbers: readonly number[]): Columns => [
  ["image", numbers.map((number) => ({ bytes: pngOf(number), path: `${number}.png` }))],
  ["label", numbers],
];

/** How pictures 0 to 5 are published, each with its number as its label. */
const layouts: Readonly<Record<string, (folder: string) => void>> = {
  "Parquet, as the hub has it": (folder) => {
    for (const [shard, numbers] of shards.entries())
      parquetOf(join(folder, `data/train-0000${shard}-of-00002.parquet`), columnsOf(numbers));
    parquetOf(join(folder, "data/test-00000-of-00001.parquet"), columnsOf([3]));
  },
  "Arrow, as datasets saves it": (folder) => {
    for (const [shard, numbers] of shards.entries())
      arrowOf(join(folder, `train/data-0000${shard}-of-00002.arrow`), columnsOf(numbers));
    arrowOf(join(folder, "test/data-00000-of-00001.arrow"), columnsOf([3]));
    arrowOf(join(folder, "test/cache-0f.arrow"), columnsOf([3]));
    write(folder, { "dataset_dict.json": '{"splits": ["train", "test"]}', "train/state.json": "{}" });
  },
  "tars, as WebDataset writes them": (folder) => {
    for (const [shard, numbers] of [...shards.entries(), ["test", [3]] as const]) {
      const files = numbers.flatMap((number) => [
        { name: `${number}.jpg`, data: jpgOf(number) },
        { name: `${number}.cls`, data: `${number}` },
      ]);
      const name = shard === "test" ? "test.tar" : `train-00000${shard}.tar`;
      write(folder, { [name]: tarOf(files) });
    }
  },
  "tars with JSON": (folder) => {
    for (const [shard, numbers] of [...shards.entries(), ["test", [3]] as const]) {
      const files = numbers.flatMap((number) => [
        { name: `${number}.png`, data: pngOf(number) },
        { name: `${number}.json`, data: JSON.stringify({ label: number }) },
      ]);
      write(folder, { [shard === "test" ? "test/0.tar" : `train/${shard}.tar`]: tarOf(files) });
    }
  },
  "lines that name files": (folder) => {
    for (const [shard, numbers] of [...shards.entries(), ["test", [3]] as const]) {
      const lines = numbers.map((number) =>
        JSON.stringify({ file_name: `pictures/${number}.png`, label: number }),
      );
      write(folder, { [shard === "test" ? "test.jsonl" : `train-${shard}.jsonl`]: lines.join("\n") });
    }
    for (const [number, { png }] of pictures.entries()) write(folder, { [`pictures/${number}.png`]: png });
  },
  "folders of classes": (folder) => {
    for (const [number, { jpg }] of pictures.entries()) write(folder, { [`train/${number}/a.jpg`]: jpg });
    write(folder, { "test/3/a.jpg": jpgOf(3) });
  },
};

/** A batch's labels, and the labels that its pictures' red stands for. */
async function batchOf(dataset: Dataset<Batch>, split: string, position: number, count: number) {
  const batch = (await dataset.batch(split, position, count)) as {
    readonly pixelValues: Tensor;
    readonly labels: Tensor;
  };
  expect(batch.pixelValues.shape).toEqual([count, 3, 4, 4]);
  const values = batch.pixelValues.toTypedArray() as Float32Array;
  const seen = Array.from({ length: count }, (_, row) =>
    Math.round((((values[row * 48] ?? 0) + 1) * 127.5) / 40),
  );
  const labels = Array.from(batch.labels.toTypedArray() as BigInt64Array, Number);
  disposeBatch(batch);
  expect(seen).toEqual(labels);
  return labels;
}

const vit = { model_type: "vit", image_size: 4 };
const options = { config: vit, source: "pictures", seed: 5 };

describe("pictures in several shards", () => {
  const task = taskNamed("image_classification") as AnyTask;

  it.each(Object.keys(layouts))(
    "are read in order, once an epoch, and from any sample on: %s",
    async (layout) => {
      const folder = mkdtempSync(join(root, "pictures-"));
      layouts[layout]?.(folder);
      const open = async () => {
        const examples = await task.read(folder);
        return { examples, dataset: task.dataset(examples, options) as Dataset<Batch> };
      };
      const { examples, dataset } = await open();
      const labels = (split: string) =>
        (examples[split] ?? []).map((each) => Number((each as { label: unknown }).label));
      expect([labels("train"), labels("validation")]).toEqual([[0, 1, 2, 3, 4, 5], [3]]);
      expect(await batchOf(dataset, "validation", 0, 1)).toEqual([3]);
      const epochs = await batchOf(dataset, "train", 0, 2 * NUM_PICTURES);
      for (const epoch of [epochs.slice(0, NUM_PICTURES), epochs.slice(NUM_PICTURES)])
        expect(epoch.toSorted()).toEqual([0, 1, 2, 3, 4, 5]);
      expect(epochs).not.toEqual([0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]);
      // A run that goes on, from the middle of an epoch.
      const { dataset: again } = await open();
      expect(await batchOf(again, "train", 4, 5)).toEqual(epochs.slice(4, 9));
    },
  );

  it("are shuffled by blocks, like records", async () => {
    const folder = mkdtempSync(join(root, "pictures-"));
    layouts["Parquet, as the hub has it"]?.(folder);
    const dataset = task.dataset(await task.read(folder), options) as Dataset<Batch>;
    const records = await openRecords(join(folder, "data/train-*.parquet"), { columns: "image=image.bytes" });
    expect(await records.at(5)).toEqual({ image: new Uint8Array(pngOf(5)) });
    const order = { seed: options.seed, isShuffled: true };
    const positions = Array.from({ length: 2 * NUM_PICTURES }, (_, position) => position);
    const expected = positions.map((position) => records.indexAt(position, order));
    expect(await batchOf(dataset, "train", 0, 2 * NUM_PICTURES)).toEqual(expected);
  });

  it("are refused by file and record: damaged, without a label, not there", async () => {
    const folder = mkdtempSync(join(root, "pictures-"));
    const good = columnsOf([0, 1]);
    parquetOf(join(folder, "train-0.parquet"), good);
    const damaged = [
      { bytes: pngOf(0), path: "a" },
      { bytes: pngOf(1).subarray(0, 30), path: "b" },
    ];
    parquetOf(join(folder, "train-1.parquet"), [
      ["image", damaged],
      ["label", [0, 1]],
    ]);
    const dataset = task.dataset(await task.read(folder), options) as Dataset<Batch>;
    await expect(dataset.batch("train", 0, 4)).rejects.toThrow(
      `expected a picture at ${join(folder, "train-1.parquet")}, record 2, got `,
    );
    const bare = mkdtempSync(join(root, "pictures-"));
    parquetOf(join(bare, "train.parquet"), [
      ["image", damaged],
      ["weight", [0, 1]],
    ]);
    await expect(task.read(bare)).rejects.toThrow(
      `a label under label or labels or folder or cls at ${join(bare, "train.parquet")}, record 1`,
    );
    const lines = write(mkdtempSync(join(root, "pictures-")), {
      "train.jsonl": JSON.stringify({ image: "away.png", label: 1 }),
    });
    await expect(task.read(lines)).rejects.toThrow(join(lines, "away.png"));
  });

  it("have as many channels as the model", async () => {
    const folder = mkdtempSync(join(root, "pictures-"));
    parquetOf(join(folder, "train.parquet"), columnsOf([5]));
    const grey = task.dataset(await task.read(folder), { ...options, config: { ...vit, num_channels: 1 } });
    const one = (await grey.batch("train", 0, 1)) as { pixelValues: Tensor };
    expect(one.pixelValues.shape).toEqual([1, 1, 4, 4]);
    // Red 200 and blue 9 in Pillow's grey.
    expect(((one.pixelValues.toTypedArray() as Float32Array)[0] ?? 0) * 127.5 + 127.5).toBeCloseTo(61, 3);
    disposeBatch(one as never);
    const pixels = Uint8Array.from({ length: 16 }, (_, place) => place);
    const train = [{ pixels, height: 4, width: 4, label: 0 }];
    const three = (await task.dataset({ train }, options).batch("train", 0, 1)) as { pixelValues: Tensor };
    const values = Array.from(three.pixelValues.toTypedArray() as Float32Array, (x) =>
      Math.round((x + 1) * 127.5),
    );
    expect(values).toEqual([...pixels, ...pixels, ...pixels]);
    disposeBatch(three as never);
  });

  it("do not stay in memory", async () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const open = async () => {
      const bytes = Uint8Array.from(pngOf(1));
      const record = { image: { bytes, path: null } };
      const again = () => ({ image: { bytes: pngOf(1) } });
      const stored = await pictureIn({ record, place: "here", folder: root, again });
      return { stored, kept: new WeakRef(bytes) };
    };
    const { stored, kept } = await open();
    await new Promise((resolve) => setImmediate(resolve));
    collect();
    expect(kept.deref()).toBeUndefined();
    expect((await stored.read()).colours[0]).toBe(40);
  });
});

describe("a run that learns pictures in several shards", () => {
  const job = fileURLToPath(new URL("../../src/job/rapidformer/jobs/finetune.ts", import.meta.url));
  const train = async (data: string, options: RuntimeOptions) => {
    const model = write(mkdtempSync(join(root, "model-")), {
      "config.json": JSON.stringify({
        ...vit,
        ...{ patch_size: 2, num_channels: 3, hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2 },
        ...{ intermediate_size: 16, hidden_dropout_prob: 0.1 },
      }),
    });
    const losses: number[] = [];
    await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, ...options });
    runtime.on("step.finished", ({ step, lossNats }) => {
      losses[step - 1] = lossNats;
    });
    await runtime.run(job, {
      ...{ task: "image_classification", dataPath: data, pretrainedModelNameOrPath: model, fresh: true },
      ...{ globalBatchSize: 4, lr: 1e-2, trainIters: 6 },
    });
    return losses;
  };

  it("goes on from a checkpoint on other ranks with the samples that were to come", async () => {
    const folder = mkdtempSync(join(root, "pictures-"));
    layouts["Parquet, as the hub has it"]?.(folder);
    const dir = join(root, "checkpoints");
    const undisturbed = await train(folder, { ranks: 2, checkpoint: { dir, everySteps: 3 } });
    const resume = join(dir, "step-000003");
    const resumed = await train(folder, { ranks: 1, accumulation: 2, resume });
    expect(resumed.slice(3)).toEqual(undisturbed.slice(3));
    expect(Object.keys(resumed)).toEqual(["3", "4", "5"]);
    // A third shard, which the data had not when the run began.
    const more = mkdtempSync(join(root, "pictures-"));
    for (const shard of [0, 1, 2])
      parquetOf(
        join(more, `data/train-0000${shard}-of-00003.parquet`),
        columnsOf([2 * shard, 2 * shard + 1, 0]),
      );
    await expect(train(more, { ranks: 1, accumulation: 2, resume })).rejects.toThrow(
      "data.trainSamples was 6, is 9",
    );
  });
});

describe("described pictures in several shards", () => {
  it("are read from Parquet and tars", async () => {
    const task = taskNamed("image_text") as AnyTask;
    const folder = mkdtempSync(join(root, "described-"));
    for (const [shard, numbers] of shards.entries()) {
      const [pairs] = columnsOf(numbers);
      parquetOf(join(folder, `train-${shard}.parquet`), [
        pairs,
        ["caption", numbers.map((number) => `red ${number}`)],
      ]);
    }
    const files = [
      { name: "3.jpg", data: jpgOf(3) },
      { name: "3.txt", data: "red 3" },
    ];
    write(folder, { "valid-000000.tar": tarOf(files) });
    const examples = await task.read(folder);
    expect((examples.train as { text: string }[]).map(({ text }) => text)).toEqual(
      [0, 1, 2, 3, 4, 5].map((number) => `red ${number}`),
    );
    const letters = [
      ..."[PAD] [UNK] [CLS] [SEP] [MASK] <|startoftext|> <|endoftext|> red 0 1 2 3 4 5".split(" "),
    ];
    write(folder, { "vocab.txt": letters.join("\n") });
    const tokenizer = await loadWordPiece(join(folder, "vocab.txt"), {
      lowercase: true,
      specials: ["<|startoftext|>", "<|endoftext|>"],
    });
    const config = {
      model_type: "clip",
      vision_config: { image_size: 2 },
      text_config: { max_position_embeddings: 8 },
    };
    const dataset = task.dataset(examples, { config, source: "pictures", tokenizer, seed: 1 });
    for (const [split, count] of [
      ["train", 6],
      ["validation", 1],
    ] as const) {
      const batch = (await dataset.batch(split, 0, count)) as { inputIds: Tensor; pixelValues: Tensor };
      expect(batch.pixelValues.shape).toEqual([count, 3, 2, 2]);
      const ids = Array.from(batch.inputIds.toTypedArray() as BigInt64Array, Number);
      const values = batch.pixelValues.toTypedArray() as Float32Array;
      const width = batch.inputIds.shape[1] as number;
      for (let row = 0; row < count; row++) {
        const number = Number(letters[ids[row * width + 2] as number]);
        const red = ((values[row * 12] as number) * 0.26862954 + 0.48145466) * 255;
        expect(red / 40).toBeCloseTo(number, 1);
      }
      disposeBatch(batch as never);
    }
  });
});

describe("recordings in several shards", () => {
  /** A hundred samples and more, all of the number's loudness. */
  const soundOf = (number: number) => new Int16Array(100 + 10 * number).fill(1000 * number);
  function wavOf(number: number, samplesPerSecond = 16_000): Buffer {
    const samples = soundOf(number);
    const header = Buffer.alloc(44);
    header.write("RIFF");
    header.writeUInt32LE(36 + samples.byteLength, 4);
    header.write("WAVEfmt ", 8);
    for (const [at, value] of [
      [16, 16],
      [24, samplesPerSecond],
      [28, 2 * samplesPerSecond],
      [40, samples.byteLength],
    ] as const)
      header.writeUInt32LE(value, at);
    for (const [at, value] of [
      [20, 1],
      [22, 1],
      [32, 2],
      [34, 16],
    ] as const)
      header.writeUInt16LE(value, at);
    header.write("data", 36);
    return Buffer.concat([header, Buffer.from(samples.buffer)]);
  }
  const bytesOf = (number: number) => (number % 2 === 0 ? wavOf(number) : flacOf(soundOf(number)));
  const endOf = (number: number) => (number % 2 === 0 ? "wav" : "flac");
  const soundsOf = (numbers: readonly number[]): Columns => [
    ["audio", numbers.map((number) => ({ bytes: bytesOf(number), path: `${number}.${endOf(number)}` }))],
    ["text", numbers.map((number) => "a".repeat(number + 1))],
  ];
  const kinds: Readonly<Record<string, (folder: string) => void>> = {
    Parquet: (folder) => {
      for (const [shard, numbers] of shards.entries())
        parquetOf(join(folder, `train-0000${shard}-of-00002.parquet`), soundsOf(numbers));
    },
    Arrow: (folder) => {
      for (const [shard, numbers] of shards.entries())
        arrowOf(join(folder, `train/data-0000${shard}-of-00002.arrow`), soundsOf(numbers));
    },
    tars: (folder) => {
      for (const [shard, numbers] of shards.entries()) {
        const files = numbers.flatMap((number) => [
          { name: `${number}.${endOf(number)}`, data: bytesOf(number) },
          { name: `${number}.txt`, data: "a".repeat(number + 1) },
        ]);
        write(folder, { [`train-${shard}.tar`]: tarOf(files) });
      }
    },
    "lines that name files": (folder) => {
      for (const [shard, numbers] of shards.entries()) {
        const lines = numbers.map((number) => ({
          path: `${number}.${endOf(number)}`,
          sentence: "a".repeat(number + 1),
        }));
        write(folder, { [`train_${shard}.jsonl`]: lines.map((line) => JSON.stringify(line)).join("\n") });
        for (const number of numbers) write(folder, { [`${number}.${endOf(number)}`]: bytesOf(number) });
      }
    },
    "files with texts beside": (folder) => {
      for (const number of shards.flat())
        write(folder, {
          [`train/${number}.${endOf(number)}`]: bytesOf(number),
          [`train/${number}.txt`]: "a".repeat(number + 1),
        });
    },
  };

  it.each(Object.keys(kinds))("are read in order, once an epoch: %s", async (kind) => {
    const task = taskNamed("speech_recognition") as AnyTask;
    const folder = mkdtempSync(join(root, "sounds-"));
    kinds[kind]?.(folder);
    const examples = await task.read(folder);
    const train = examples.train as readonly {
      text: string;
      samples: { length: number; read(): Promise<Float32Array> };
    }[];
    expect(train.map(({ text }) => text.length)).toEqual([1, 2, 3, 4, 5, 6]);
    for (const [number, { samples }] of train.entries()) {
      const read = await samples.read();
      expect([samples.length, read.length]).toEqual([100 + 10 * number, 100 + 10 * number]);
      expect(read[7]).toBeCloseTo((1000 * number) / 32768, 4);
    }
    const config = { model_type: "wav2vec2", vocab_size: 8 };
    const dataset = task.dataset(examples, { config, source: "sounds", seed: 3 });
    const batch = (await dataset.batch("train", 0, NUM_PICTURES)) as {
      attentionMask: Tensor;
      labels: Tensor;
    };
    const mask = batch.attentionMask.sum([1]).toTypedArray() as BigInt64Array;
    const lengths = batch.labels.ge(0).to("int64").sum([1]).toTypedArray() as BigInt64Array;
    expect(Array.from(mask, (count) => (Number(count) - 100) / 10)).toEqual(
      Array.from(lengths, (n) => Number(n) - 1),
    );
    expect(Array.from(lengths, Number).toSorted()).toEqual([1, 2, 3, 4, 5, 6]);
    disposeBatch(batch as never);
  });

  it("have their folders as labels, and are trained on without any", async () => {
    const folder = mkdtempSync(join(root, "sounds-"));
    for (const number of [0, 1, 2])
      write(folder, { [`train/${"abc"[number]}/0.${endOf(number)}`]: bytesOf(number) });
    write(folder, { "valid/b/0.wav": wavOf(4) });
    const { train, validation } = await taskNamed("audio_classification").read(folder);
    const labelsOf = (split: readonly unknown[] | undefined) =>
      (split ?? []).map((each) => (each as { label: string }).label);
    expect([labelsOf(train), labelsOf(validation)]).toEqual([["a", "b", "c"], ["b"]]);
    const bare = await taskNamed("speech_pretraining").read(folder);
    expect([bare.train.length, bare.validation?.length]).toEqual([3, 1]);
  });

  it("have the sampling rate of the model, or else all the same", async () => {
    const config = { model_type: "wav2vec2", num_attention_heads: 2 };
    const folder = write(mkdtempSync(join(root, "sounds-")), {
      "train/a/0.wav": wavOf(0),
      "train/b/1.flac": bytesOf(1),
      "config.json": JSON.stringify(config),
      "preprocessor_config.json": JSON.stringify({ sampling_rate: 8000 }),
    });
    const refusal = (rate: number, source: string, file: string, got: number) =>
      `[data] expected ${rate} samples per second, as in ${source}, at ${join(folder, file)}, got ${got} (resample the recordings, such as by ffmpeg -ar ${rate})`;
    const ofModel = "the model's preprocessor_config.json";
    for (const name of ["audio_classification", "speech_pretraining"] as const) {
      const task = taskNamed(name);
      const [examples, given] = [await task.read(folder), { config, source: "sounds", seed: 3 }];
      expect(() => task.dataset(examples, { ...given, samplingRate: 16_000 })).not.toThrow();
      expect(() => task.dataset(examples, { ...given, samplingRate: 8000 })).toThrow(
        refusal(8000, ofModel, "train, record 1", 16_000),
      );
    }
    await using runtime = await Runtime.spawn({ ranks: 1, threadsPerRank: 1, warmStandby: false });
    const job = fileURLToPath(new URL("../../src/job/rapidformer/jobs/finetune.ts", import.meta.url));
    await expect(
      runtime.run(job, {
        ...{ task: "audio_classification", dataPath: folder, pretrainedModelNameOrPath: folder, fresh: true },
        ...{ globalBatchSize: 2, lr: 1e-2, trainIters: 1 },
      }),
    ).rejects.toThrow(refusal(8000, ofModel, "train, record 1", 16_000));
    write(folder, { "train/a/0.wav": wavOf(0, 11_025) });
    const task = taskNamed("audio_classification");
    const mixed = await task.read(folder);
    expect(() => task.dataset(mixed, { config, source: "sounds", seed: 3 })).toThrow(
      refusal(11_025, "the first recording", "train, record 2", 16_000),
    );
  });
});
