// The cases that are learnt beside transformers: small models that learn real data in minutes on two cores. Dropout is 0 everywhere and the
// optimizer the plain one, so that both sides compute the same.
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { LinearDecay, type Schedule } from "../../src/compute/optim/index.ts";
import { type AnyTask, type Examples, taskNamed } from "../../src/job/tasks/index.ts";
import {
  CharacterSet,
  CharacterTokenizer,
  loadWordPiece,
  type TaggedWords,
  type Tokenizer,
} from "../../src/library/data/index.ts";

/** One comparison. */
export interface LearningCase {
  readonly task: string;
  /** As config.json has it. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly batch: number;
  /** Reached after the warm-up, and left in a straight line to nothing. */
  readonly lr: number;
  /** Tokens of a row, or samples of a recording. */
  readonly length?: number;
  /** Where its data lies below the folder of the data. */
  readonly data: string;
  /** How what is learnt is compared. None: speed alone is. */
  readonly learning?: Learning;
  /** Whether speed and memory are compared. True */
  readonly isTimed?: boolean;
}

/** How long something is learnt, and how it is judged. */
export interface Learning {
  readonly steps: number;
  /** The name of its score, and whether more of it is better. */
  readonly score: string;
  readonly isBetterAbove: boolean;
  /** The score of a model that learns nothing, and the reason. */
  readonly chance: number;
  readonly chanceIs: string;
  /** How far from chance labels without sense may end. 0.03: what 2,000 held-out samples and the choice of a majority leave open */
  readonly slack?: number;
  /** From how many starts each seed is learnt that differ by roundings, where those part two runs of one side. 1 */
  readonly starts?: number;
}

/** Small enough to learn MRPC or a treebank in minutes. */
const smallBert = {
  model_type: "bert",
  vocab_size: 30522,
  hidden_size: 128,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  intermediate_size: 512,
  max_position_embeddings: 128,
  hidden_dropout_prob: 0,
  attention_probs_dropout_prob: 0,
};

export const cases = {
  bert: {
    task: "sequence_classification",
    config: {
      model_type: "bert",
      vocab_size: 30522,
      hidden_size: 256,
      num_hidden_layers: 4,
      num_attention_heads: 4,
      intermediate_size: 1024,
      max_position_embeddings: 128,
      hidden_dropout_prob: 0,
      attention_probs_dropout_prob: 0,
    },
    batch: 32,
    lr: 1e-4,
    length: 96,
    data: "mrpc",
  },
  // Two of three pairs are paraphrases: what is learnt from nothing changes few guesses of the majority, so that correlation tells it
  // and accuracy hardly does. Two epochs: in a third the pairs are known by heart.
  mrpc: {
    task: "sequence_classification",
    config: smallBert,
    batch: 32,
    lr: 5e-4,
    length: 96,
    data: "mrpc",
    learning: {
      steps: 256,
      score: "matthews",
      isBetterAbove: true,
      chance: 0,
      chanceIs: "no correlation of guesses and labels",
      // Two standard errors of a correlation over 1,725 pairs.
      slack: 0.05,
    },
    isTimed: false,
  },
  tags: {
    task: "token_classification",
    config: smallBert,
    batch: 32,
    lr: 1e-3,
    length: 64,
    data: "ewt",
    learning: {
      steps: 150,
      score: "accuracy",
      isBetterAbove: true,
      chance: 0.19,
      chanceIs: "the share of nouns",
    },
    isTimed: false,
  },
  vit: {
    task: "image_classification",
    config: {
      model_type: "vit",
      image_size: 28,
      patch_size: 4,
      num_channels: 1,
      hidden_size: 128,
      num_hidden_layers: 4,
      num_attention_heads: 4,
      intermediate_size: 512,
      hidden_dropout_prob: 0,
      attention_probs_dropout_prob: 0,
    },
    batch: 64,
    lr: 1e-3,
    data: "mnist",
    learning: { steps: 300, score: "accuracy", isBetterAbove: true, chance: 0.1, chanceIs: "one of ten" },
  },
  // A frame each 80 ms, so that a word has few of them: with a frame each 10 or 40 ms, nothing is said after 300 steps yet.
  wav2vec2: {
    task: "speech_recognition",
    config: {
      model_type: "wav2vec2",
      vocab_size: 12,
      hidden_size: 128,
      num_hidden_layers: 2,
      num_attention_heads: 4,
      intermediate_size: 512,
      conv_dim: [64, 64, 128, 128],
      conv_kernel: [80, 8, 8, 4],
      conv_stride: [10, 4, 4, 4],
      conv_bias: true,
      num_feat_extract_layers: 4,
      feat_extract_norm: "layer",
      do_stable_layer_norm: true,
      num_conv_pos_embeddings: 16,
      num_conv_pos_embedding_groups: 8,
      hidden_dropout: 0,
      activation_dropout: 0,
      attention_dropout: 0,
      feat_proj_dropout: 0,
      final_dropout: 0,
      layerdrop: 0,
      apply_spec_augment: false,
      mask_time_prob: 0,
      ctc_loss_reduction: "mean",
      pad_token_id: 0,
    },
    batch: 16,
    lr: 1e-3,
    length: 6000,
    data: "fsdd",
    learning: {
      steps: 1000,
      score: "wordErrorRate",
      isBetterAbove: false,
      chance: 0.9,
      chanceIs: "nine of ten digits wrong, or nothing said",
      starts: 3,
    },
  },
  llama: {
    task: "causal_lm",
    config: {
      model_type: "llama",
      vocab_size: 66,
      hidden_size: 192,
      num_hidden_layers: 4,
      num_attention_heads: 6,
      num_key_value_heads: 3,
      intermediate_size: 512,
      max_position_embeddings: 128,
      tie_word_embeddings: false,
    },
    batch: 16,
    lr: 1e-3,
    length: 128,
    data: "tinyshakespeare",
    learning: {
      steps: 120,
      score: "perplexity",
      isBetterAbove: false,
      chance: 28,
      chanceIs: "what the frequencies of the characters alone come to",
      // 3 % of it.
      slack: 0.84,
    },
  },
} as const satisfies Readonly<Record<string, LearningCase>>;

export type CaseName = keyof typeof cases;

/** Steps in which the rate rises. */
const WARMUP = 10;

/** The rate of a run of so many steps: up to the peak, and in a line down to nothing, so that all that is learnt has settled. */
export function scheduleOf(peak: { readonly lr: number }, steps: number): Schedule {
  return new LinearDecay(peak, { warmup: Math.min(WARMUP, steps), end: steps + 1 });
}

/** Held-out samples that are scored, at most. */
const MOST_HELD_OUT = 2000;

/** The data of a case, as both sides see it. */
export interface OpenCase {
  readonly task: AnyTask;
  readonly examples: Examples<unknown>;
  readonly tokenizer: Tokenizer | undefined;
}

/**
 * @param root - the folder of the data
 * @param shuffled - whether labels are shuffled, which leaves nothing to learn
 */
export async function openCase(name: CaseName, root: string, shuffled: boolean): Promise<OpenCase> {
  const { data, task: taskName } = cases[name];
  const task = taskNamed(taskName);
  const path = join(root, data);
  if (!existsSync(path))
    throw new Error(`[bench learning] expected the data of ${name} at ${path}: got none`);
  const read = await task.read(path);
  const train = withFigures(read.train);
  const validation = withFigures(read.validation ?? read.test ?? []).slice(0, MOST_HELD_OUT);
  const examples = { train: shuffled ? dealtAnew(name, train) : train, validation };
  return { task, examples, tokenizer: await tokenizerOf(name, root) };
}

const DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];

/** A digit that is said is written as a figure, one sign a recording. Anything else stays as it is. */
function withFigures(examples: readonly unknown[]): readonly unknown[] {
  return (examples as readonly { readonly text?: string }[]).map((example) => {
    const figure = DIGITS.indexOf(example.text ?? "");
    return figure < 0 ? example : { ...example, text: `${figure}` };
  });
}

async function tokenizerOf(name: CaseName, root: string): Promise<Tokenizer | undefined> {
  if (name === "bert" || name === "mrpc" || name === "tags") {
    const specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
    return loadWordPiece(join(root, "vocab", "bert-base-uncased-vocab.txt"), { lowercase: true, specials });
  }
  if (name !== "llama") return undefined;
  const characters = new CharacterSet();
  characters.add(await readFile(join(root, cases.llama.data, "input.txt"), "utf8"));
  return new CharacterTokenizer(characters.toString());
}

/** The same examples with others' labels, or of a text its characters in another order. */
function dealtAnew(name: CaseName, examples: readonly unknown[]): readonly unknown[] {
  // Steps that share no factor with the length visit each place once, and none its own.
  const place = (index: number, length: number) => (index * strideOf(length) + 1) % length;
  if (name === "llama")
    return (examples as readonly string[]).map((text) =>
      Array.from({ length: text.length }, (_, index) => text[place(index, text.length)]).join(""),
    );
  if (name === "tags") {
    // Among the words of all sentences, since these are of different lengths.
    const tagged = examples as readonly TaggedWords[];
    const tags = tagged.flatMap((example) => example.tags);
    let first = 0;
    return tagged.map((example) => {
      const dealt = example.tags.map((_, index) => tags[place(first + index, tags.length)] as string);
      first += example.tags.length;
      return { ...example, tags: dealt };
    });
  }
  const label = name === "wav2vec2" ? "text" : "label";
  const all = examples as readonly Readonly<Record<string, unknown>>[];
  return all.map((example, index) => ({ ...example, [label]: all[place(index, all.length)]?.[label] }));
}

/** About 0.6 of a length, and coprime to it. */
function strideOf(length: number): number {
  const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b));
  let stride = Math.floor(0.618 * length);
  while (divisor(stride, length) !== 1) stride++;
  return stride;
}
