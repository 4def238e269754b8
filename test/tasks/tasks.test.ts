import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dematerialize, materialize } from "../../src/compute/nn/index.ts";
import { liveTensors, noGrad, ops, scope, Tensor } from "../../src/compute/tensor/index.ts";
import { type AnyTask, taskModel, taskNamed, taskNames } from "../../src/job/tasks/index.ts";
import {
  type Batch,
  ChatTemplate,
  disposeBatch,
  loadTokenizer,
  loadWordPiece,
  type Rows,
  type Tokenizer,
} from "../../src/library/data/index.ts";

/** A vocabulary as BERT's file has it: its own tokens, then letters. */
const vocabulary = [
  "[PAD]",
  "[UNK]",
  "[CLS]",
  "[SEP]",
  "[MASK]",
  "</s>",
  "<|startoftext|>",
  "<|endoftext|>",
  ..."abcdefghijklmnopqrstuvwxyz0123456789.",
  ..."abcdefghijklmnopqrstuvwxyz0123456789".split("").map((letter) => `##${letter}`),
  "the",
  "cat",
  "dog",
  "sat",
];

const words = "{% for message in messages %}{{ message.content + ' ' }}{% endfor %}";
/** Questions and answers, a chat a line. */
const chats = (count: number) =>
  Array.from({ length: count }, (_, index) =>
    JSON.stringify({ prompt: `the cat ${index}`, completion: "the dog sat" }),
  ).join("\n");

const bert = {
  model_type: "bert",
  vocab_size: vocabulary.length,
  hidden_size: 16,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  intermediate_size: 16,
  max_position_embeddings: 40,
};

const wav2vec2 = {
  model_type: "wav2vec2",
  hidden_size: 16,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  intermediate_size: 16,
  conv_dim: [8, 8],
  conv_kernel: [10, 3],
  conv_stride: [5, 2],
  num_feat_extract_layers: 2,
  num_conv_pos_embeddings: 4,
  num_conv_pos_embedding_groups: 2,
};

const sentences = ["the cat sat", "the dog sat", "a cat and a dog", "the cat", "dog"];
const lines = (records: readonly object[]) => records.map((record) => JSON.stringify(record)).join("\n");

/** A WAV file of 16 bits. */
function wav(numSamples: number, frequency: number): Buffer {
  const data = Buffer.alloc(2 * numSamples);
  for (let place = 0; place < numSamples; place++)
    data.writeInt16LE(Math.round(8000 * Math.sin(frequency * place)), 2 * place);
  const header = Buffer.alloc(44);
  header.write("RIFF", 0);
  header.writeUInt32LE(36 + data.length, 4);
  header.write("WAVEfmt ", 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(8000, 24);
  header.writeUInt32LE(16000, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write("data", 36);
  header.writeUInt32LE(data.length, 40);
  return Buffer.concat([header, data]);
}

function idx(shape: readonly number[], data: Uint8Array): Buffer {
  const header = Buffer.alloc(4 + 4 * shape.length);
  header[2] = 8;
  header[3] = shape.length;
  for (const [dim, size] of shape.entries()) header.writeUInt32BE(size, 4 + 4 * dim);
  return Buffer.concat([header, data]);
}

/** A PNG of 4 × 4 pixels, its rows filtered as given. */
function png(colourType: 2 | 6, filter: number, values: (place: number) => number): Buffer {
  const chunk = (name: string, content: Buffer) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(content.length);
    return Buffer.concat([length, Buffer.from(name), content, Buffer.alloc(4)]);
  };
  const rowBytes = 4 * (colourType === 2 ? 3 : 4);
  const data = Buffer.alloc(4 * (rowBytes + 1));
  for (let row = 0; row < 4; row++) {
    data[row * (rowBytes + 1)] = filter;
    for (let place = 0; place < rowBytes; place++)
      data[row * (rowBytes + 1) + 1 + place] = values(row * rowBytes + place);
  }
  const header = Buffer.from([0, 0, 0, 4, 0, 0, 0, 4, 8, colourType, 0, 0, 0]);
  const signature = Buffer.from("89504e470d0a1a0a", "hex");
  const chunks = [chunk("IHDR", header), chunk("IDAT", deflateSync(data)), chunk("IEND", Buffer.alloc(0))];
  return Buffer.concat([signature, ...chunks]);
}

/** The files of a task's data, and a model that fits them. */
const cases: Readonly<
  Record<
    string,
    {
      readonly files: Readonly<Record<string, string | Buffer>>;
      readonly config: object;
      readonly scores: readonly string[];
    }
  >
> = {
  sequence_classification: {
    files: {
      "msr_train.txt": `\uFEFFQuality\t#1 String\t#2 String\n1\tthe cat\ta "cat"\n0\tthe dog\ta cat sat\n1\tdog\tdog\n`,
      "msr_test.txt": "Quality\t#1 String\t#2 String\n1\tcat\tcat\n0\tcat\tdog\n",
    },
    config: bert,
    scores: ["accuracy", "f1", "matthews"],
  },
  token_classification: {
    files: {
      "dev.conllu":
        "# text\n1\tthe\t_\tDET\t_\t_\t_\t_\t_\t_\n2-3\tcatdog\t_\t_\t_\t_\t_\t_\t_\t_\n2\tcatdog\t_\tNOUN\t_\t_\t_\t_\t_\t_\n\n1\tsat\t_\tVERB\t_\t_\t_\t_\t_\t_\n",
      "test.conllu": "1\tdog\t_\tNOUN\t_\t_\t_\t_\t_\t_\n2\tsat\t_\tVERB\t_\t_\t_\t_\t_\t_\n\n",
    },
    config: bert,
    scores: ["accuracy", "f1"],
  },
  question_answering: {
    files: {
      "train.jsonl": lines([
        { question: "who sat", context: "the cat sat.", answers: { text: ["cat"], answer_start: [4] } },
        { question: "who", context: "the big dog sat", answers: { text: ["big dog"], answer_start: [4] } },
      ]),
      "valid.jsonl": lines([
        { question: "who", context: "a dog", answers: { text: ["a dog"], answer_start: [0] } },
      ]),
    },
    config: bert,
    scores: ["exactMatch", "f1"],
  },
  masked_lm: {
    files: { "train.txt": sentences.join("\n"), "test.txt": sentences.join("\n") },
    config: bert,
    scores: ["accuracy", "perplexity"],
  },
  causal_lm: {
    files: { "all.txt": Array.from({ length: 40 }, () => sentences.join(" ")).join("\n") },
    config: {
      model_type: "gpt2",
      vocab_size: vocabulary.length,
      n_embd: 16,
      n_layer: 1,
      n_head: 2,
      n_positions: 256,
    },
    scores: ["perplexity"],
  },
  chat: {
    files: {
      "train.jsonl": chats(40),
      "dev.jsonl": chats(5),
    },
    config: {
      model_type: "gpt2",
      vocab_size: vocabulary.length,
      n_embd: 16,
      n_layer: 1,
      n_head: 2,
      n_positions: 64,
    },
    scores: ["perplexity"],
  },
  seq2seq_lm: {
    files: {
      "train.tsv": "source\ttarget\nthe cat\ttac\nthe dog\tgod\n",
      "dev.jsonl": lines([{ source: "a cat", target: "tac" }]),
    },
    config: {
      model_type: "t5",
      vocab_size: vocabulary.length,
      d_model: 16,
      d_kv: 8,
      d_ff: 16,
      num_layers: 1,
      num_heads: 2,
      decoder_start_token_id: 0,
    },
    scores: ["accuracy", "exactMatch"],
  },
  image_classification: {
    files: {
      "train-images-idx3-ubyte": idx(
        [3, 4, 4],
        Uint8Array.from({ length: 48 }, (_, place) => place),
      ),
      "train-labels-idx1-ubyte": idx([3], Uint8Array.from([0, 1, 2])),
      "t10k-images-idx3-ubyte": idx(
        [2, 4, 4],
        Uint8Array.from({ length: 32 }, (_, place) => 255 - place),
      ),
      "t10k-labels-idx1-ubyte": idx([2], Uint8Array.from([1, 2])),
    },
    config: {
      model_type: "vit",
      image_size: 4,
      patch_size: 2,
      num_channels: 1,
      hidden_size: 16,
      num_hidden_layers: 1,
      num_attention_heads: 2,
      intermediate_size: 16,
    },
    scores: ["accuracy", "top5"],
  },
  image_text: {
    files: {
      "train.jsonl": lines([
        { text: "the cat", image: "cat.png" },
        { text: "a dog", image: "dog.png" },
      ]),
      "valid.tsv": "text\timage\na cat\tcat.png\nthe dog\tdog.png\n",
      "cat.png": png(2, 4, (place) => (7 * place) % 256),
      "dog.png": png(6, 1, (place) => (place % 4 === 3 ? 255 : (11 * place) % 256)),
    },
    config: {
      model_type: "clip",
      projection_dim: 8,
      text_config: {
        vocab_size: vocabulary.length,
        hidden_size: 16,
        num_hidden_layers: 1,
        num_attention_heads: 2,
        intermediate_size: 16,
        max_position_embeddings: 16,
        eos_token_id: 7,
      },
      vision_config: {
        hidden_size: 16,
        num_hidden_layers: 1,
        num_attention_heads: 2,
        intermediate_size: 16,
        image_size: 4,
        patch_size: 2,
      },
    },
    scores: ["recallAt1", "recallAt5"],
  },
  speech_recognition: {
    files: {
      "0_ann_5.wav": wav(900, 0.1),
      "7_ann_9.wav": wav(1200, 0.3),
      "3_bob_6.wav": wav(1000, 0.2),
      "0_ann_0.wav": wav(800, 0.1),
      "8_bob_1.wav": wav(1100, 0.2),
    },
    config: {
      model_type: "wav2vec2",
      vocab_size: 20,
      hidden_size: 16,
      num_hidden_layers: 1,
      num_attention_heads: 2,
      intermediate_size: 16,
      conv_dim: [8, 8],
      conv_kernel: [10, 3],
      conv_stride: [5, 2],
      num_feat_extract_layers: 2,
      num_conv_pos_embeddings: 4,
      num_conv_pos_embedding_groups: 2,
    },
    scores: ["characterErrorRate", "wordErrorRate"],
  },
  speech_pretraining: {
    files: {
      "a.wav": wav(900, 0.1),
      "b.wav": wav(1200, 0.3),
      "c.wav": wav(1000, 0.2),
      "valid-d.wav": wav(800, 0.1),
      "valid-e.wav": wav(1100, 0.2),
      "valid-f.wav": wav(20, 0.2), // too short for a mask
    },
    config: {
      ...wav2vec2,
      num_codevectors_per_group: 5,
      codevector_dim: 6,
      proj_codevector_dim: 7,
      num_negatives: 4,
    },
    scores: ["accuracy", "codePerplexity"],
  },
  audio_classification: {
    files: {
      "train.jsonl": lines([
        { path: "a.wav", label: "bell" },
        { path: "b.wav", label: "rain" },
      ]),
      "dev.jsonl": lines([
        { path: "c.wav", label: "rain" },
        { path: "d.wav", label: "bell" },
        { path: "e.wav", label: "bell" },
      ]),
      "a.wav": wav(900, 0.1),
      "b.wav": wav(1200, 0.3),
      "c.wav": wav(1000, 0.2),
      "d.wav": wav(800, 0.1),
      "e.wav": wav(1100, 0.2),
    },
    config: {
      ...wav2vec2,
      classifier_proj_size: 8,
    },
    scores: ["accuracy"],
  },
};

describe("a task", () => {
  let folder: string;
  let tokenizer: Tokenizer;
  let endings: Tokenizer;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "troupe-tasks-"));
    writeFileSync(join(folder, "vocab.txt"), `${vocabulary.join("\n")}\n`);
    tokenizer = await loadTokenizer(folder);
    endings = await loadWordPiece(join(folder, "vocab.txt"), {
      lowercase: true,
      specials: ["</s>", "<|startoftext|>", "<|endoftext|>"],
    });
    for (const [name, { files }] of Object.entries(cases)) {
      mkdirSync(join(folder, name));
      for (const [file, content] of Object.entries(files)) writeFileSync(join(folder, name, file), content);
    }
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it("keeps the labels of the folder's head where it knows all that the data shows, and makes a new head for others", () => {
    const names = ["O", "B-PER", "I-PER", "B-LOC"];
    const id2label = Object.fromEntries(names.map((name, id) => [String(id), name]));
    const tuned = { ...bert, id2label, architectures: ["BertForTokenClassification"] };
    const labelsFor = (tags: readonly string[], config: object) => {
      const task = taskNamed("token_classification");
      const example = { words: tags.map(() => "cat"), tags };
      const data = task.dataset({ train: [example] }, {
        config,
        source: "words",
        tokenizer,
        seed: 1,
      } as never);
      return Object.values((data.facts as unknown as { fields: { id2label: object } }).fields.id2label);
    };
    expect(labelsFor(["B-LOC", "O"], tuned)).toEqual(names);
    expect(labelsFor(["3", "0"], tuned)).toEqual(names);
    expect(labelsFor(["B-ORG", "O"], tuned)).toEqual(["B-ORG", "O"]);
    expect(labelsFor(["4", "0"], tuned)).toEqual(["0", "1", "2", "3", "4"]);
    // A head of another task is none of this one's.
    expect(labelsFor(["B-LOC", "O"], { ...tuned, architectures: ["BertForMaskedLM"] })).toEqual([
      "B-LOC",
      "O",
    ]);
    const classes = (labels: readonly (string | number)[], own: readonly string[]) => {
      const config = {
        ...bert,
        id2label: Object.fromEntries(own.map((name, id) => [String(id), name])),
        architectures: ["BertForSequenceClassification"],
      };
      const train = labels.map((label) => ({ text: "cat", label }));
      const options = { config, source: "texts", tokenizer, seed: 1 } as never;
      const { facts } = taskNamed("sequence_classification").dataset({ train }, options);
      return Object.values((facts as unknown as { fields: { id2label: object } }).fields.id2label);
    };
    expect(classes([0, 1], ["NEGATIVE", "POSITIVE"])).toEqual(["NEGATIVE", "POSITIVE"]);
    expect(classes([0, 1], ["no", "neutral", "yes"])).toEqual(["0", "1"]);
    expect(classes([0, 1], ["LABEL_0", "LABEL_1", "LABEL_2"])).toEqual(["LABEL_0", "LABEL_1", "LABEL_2"]);
  });

  it("holds labels for numbers where all are and any has a fraction, and else for classes", () => {
    const labelsFor = (...labels: (string | number)[]) => {
      const train = labels.map((label) => ({ text: "cat", label }));
      const options = { config: bert, source: "texts", tokenizer, seed: 1 } as never;
      return taskNamed("sequence_classification").dataset({ train }, options).facts;
    };
    const regression = { fields: { num_labels: 1, problem_type: "regression" } };
    expect(labelsFor(5, 3.8, 0)).toMatchObject(regression);
    expect(labelsFor("5.0", "3.8", "0.0")).toMatchObject(regression);
    expect(labelsFor(0, 1)).toMatchObject({ fields: { id2label: { 0: "0", 1: "1" } } });
    expect(labelsFor("1.5", "none")).toMatchObject({ fields: { id2label: { 0: "1.5", 1: "none" } } });
  });

  const open = async (task: AnyTask, seed = 1) => {
    const name = task.name ?? task.task;
    const config = (cases[name]?.config ?? {}) as Readonly<Record<string, unknown>>;
    const examples = await task.read(join(folder, name));
    const cutsBy = ["t5", "clip"].includes(String(config.model_type)) ? endings : tokenizer;
    const chatTemplate = name === "chat" ? await ChatTemplate.parse(words) : undefined;
    const dataset = task.dataset(examples, { source: name, config, tokenizer: cutsBy, chatTemplate, seed });
    return { dataset, model: taskModel(task, config, dataset.facts), examples };
  };

  it("has a case here, whichever is defined", () => {
    expect(Object.keys(cases).toSorted()).toEqual([...taskNames].toSorted());
  });

  it.each(taskNames)(
    "%s reads its files, has a loss, and is scored alike however its rows are dealt",
    async (name) => {
      const task = taskNamed(name);
      const before = liveTensors();
      const { dataset, model } = await open(task);
      const held = dataset.splits.validation?.numSamples ?? 0;
      expect(held).toBeGreaterThan(0);
      materialize(model, { seed: 3 });
      model.eval();
      const batch = (await dataset.batch("train", 0, 2)) as Batch;
      const loss = noGrad(() =>
        scope(() => {
          const losses = task.loss(model, batch as never, {} as never);
          return Object.values(losses instanceof Tensor ? { losses } : losses).reduce(
            (sum, each) => sum + each.item(),
            0,
          );
        }),
      );
      expect(loss).toBeGreaterThan(0);
      expect(loss).toBeLessThan(1000);
      expect(task.weigh === undefined || Number(scope(() => task.weigh?.(batch))) > 0).toBe(true);
      disposeBatch(batch);

      const scoreBy = async (step: number) => {
        const rows: Rows[] = [];
        for (let position = 0; position < held; position += step) {
          const part = (await dataset.batch(
            "validation",
            position,
            Math.min(step, held - position),
          )) as Batch;
          rows.push(noGrad(() => scope(() => task.predict(model, part as never))));
          disposeBatch(part);
        }
        const joined = Object.fromEntries(
          Object.keys(rows[0] ?? {}).map((key) => [
            key,
            ops.cat(
              rows.map((each) => each[key] as Tensor),
              0,
            ),
          ]),
        );
        const scores = await dataset.score?.("validation", joined);
        for (const each of [...rows, joined]) for (const tensor of Object.values(each)) tensor.dispose();
        return scores;
      };
      const scores = (await scoreBy(1)) as Record<string, number>;
      expect(Object.keys(scores).toSorted()).toEqual(cases[name]?.scores);
      for (const value of Object.values(scores)) expect(Number.isFinite(value)).toBe(true);
      const together = (await scoreBy(held)) as Record<string, number>;
      for (const [key, value] of Object.entries(scores)) expect(together[key]).toBeCloseTo(value, 4); // rounding of one row's product
      dematerialize(model);
      expect(liveTensors()).toBe(before);
    },
  );
});
