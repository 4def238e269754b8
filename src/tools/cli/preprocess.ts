import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Command, Option } from "commander";
import { TroupeError } from "../../errors/index.ts";
import { ownValue } from "../../errors/untrusted/index.ts";
import * as data from "../../library/data/index.ts";
import { number, print } from "./flags.ts";

interface PreprocessFlags {
  readonly input: string;
  readonly jsonKeys: readonly string[];
  readonly outputPrefix: string;
  readonly tokenizerType: string;
  readonly tokenizer?: string;
  readonly vocabFile?: string;
  readonly vocab?: string;
  readonly mergeFile?: string;
  readonly appendEod: boolean;
  readonly splitSentences: boolean;
  readonly keepNewlines: boolean;
  readonly lang: string;
  readonly punkt?: string;
  readonly datasetImpl: "mmap" | "lazy" | "cached";
  readonly workers?: number;
  readonly plainLoop: boolean;
  readonly logInterval: number;
  readonly makeVocabSizeDivisibleBy: number;
  readonly tensorModelParallelSize: number;
}

const kinds = ["BertWordPieceLowerCase", "BertWordPieceCase", "GPT2BPETokenizer"] as const;

/** NLTK's names of languages, for `--lang`. */
// biome-ignore format: a list
const languages: Readonly<Record<string, string>> = {
  english: "en", german: "de", french: "fr", spanish: "es", italian: "it", portuguese: "pt", dutch: "nl",
  chinese: "zh", japanese: "ja",
};

/** Adds `troupe preprocess`, with the flags of Megatron's `preprocess_data.py`. */
export function addPreprocessCommand(program: Command): void {
  // biome-ignore format: a table, with a row on each line
  program
    .command("preprocess")
    .description("tokenize a corpus of JSON lines into Megatron's indexed datasets, on all cores")
    .requiredOption("--input <file>", "JSON lines, one document in each")
    .requiredOption("--output-prefix <prefix>", "write PREFIX_KEY_document, or PREFIX_KEY_sentence with --split-sentences")
    .option("--json-keys <key...>", "text fields of a document; each becomes a dataset", ["text"])
    .addOption(new Option("--tokenizer-type <type>", "kind of tokenizer").choices(kinds))
    .option("--tokenizer <path>", "a tokenizer.json or a Hugging Face folder, instead of a type")
    .option("--vocab-file <file>", "GPT-2's vocab.json or BERT's vocab.txt")
    .addOption(new Option("--vocab <file>", "the same").hideHelp())
    .option("--merge-file <file>", "GPT-2's merges.txt")
    .option("--append-eod", "end each document with <|endoftext|> or [SEP]", false)
    .option("--split-sentences", "make each sentence a sequence, split by Unicode's rules or by Punkt", false)
    .option("--keep-newlines", "keep the white space after a sentence with it, as Megatron does", false)
    .option("--lang <language>", "language of the sentences", "english")
    .option("--punkt <folder>", "find sentences as Megatron does, with NLTK's Punkt model: nltk_data/tokenizers/punkt_tab")
    .addOption(new Option("--dataset-impl <format>", "format of the datasets").choices(["mmap", "lazy", "cached"]).default("mmap"))
    .option("--workers <n>", "threads (default: one for each core)", number)
    .option("--plain-loop", "also measure a plain loop over the lines on one thread, for two seconds", false)
    .option("--log-interval <documents>", "documents between progress lines", number, 10_000)
    .option("--make-vocab-size-divisible-by <n>", "pad the reported vocabulary size to a multiple of this", number, 128)
    .option("--tensor-model-parallel-size <n>", "tensor-parallel ranks; the padding takes them into account", number, 1)
    .action(run);
}

async function run(flags: PreprocessFlags): Promise<void> {
  for (const name of ["punkt", "keepNewlines"] as const) {
    if (!flags[name] || flags.splitSentences) continue;
    const flag = name === "punkt" ? "--punkt" : "--keep-newlines";
    throw misused(`${flag} with --split-sentences`, `${flag} alone`);
  }
  const tokenizer = await tokenizerOf(flags);
  const vocabSize = megatronSize(tokenizer, flags);
  const began = performance.now();
  let reported = 0;
  const rate = (count: number) => Math.round((1000 * count) / (performance.now() - began));
  const { documents, tokens, prefixes } = await data.preprocess({
    input: flags.input,
    keys: flags.jsonKeys,
    outputPrefix: flags.outputPrefix,
    tokenizer,
    vocabSize,
    format: flags.datasetImpl === "mmap" ? "mmap" : "cached",
    ...(flags.appendEod && { endOfDocument: endOfDocument(tokenizer, flags) }),
    ...(flags.splitSentences && { sentencesOf: sentencesOf(flags), keepNewlines: flags.keepNewlines }),
    ...(flags.workers !== undefined && { workers: flags.workers }),
    onProgress: ({ documents, bytes }) => {
      if (documents < reported + flags.logInterval) return;
      reported = documents;
      process.stderr.write(
        `${documents} documents, ${rate(documents)} a second, ${(rate(bytes) / 1e6).toFixed(2)} MB/s\n`,
      );
    },
  });
  const tokensPerSecond = rate(tokens);
  print(`${documents} documents, ${tokens} tokens, ${tokensPerSecond} a second`);
  if (flags.plainLoop) {
    const plain = await plainRate(flags, tokenizer);
    print(`a plain loop: ${plain} a second, ${(tokensPerSecond / plain).toFixed(2)} x`);
  }
  // Megatron's padding, so that ranks can split it evenly.
  const multiple = flags.makeVocabSizeDivisibleBy * flags.tensorModelParallelSize;
  print(`vocabulary: ${vocabSize}, padded to ${Math.ceil(vocabSize / multiple) * multiple}`);
  for (const prefix of prefixes) print(prefix);
}

const PLAIN_LOOP_MS = 2000;

/** Tokens per second of a plain loop: read a line, parse its JSON, tokenize. */
async function plainRate({ input, jsonKeys }: PreprocessFlags, tokenizer: data.Tokenizer): Promise<number> {
  const beganMs = performance.now();
  let [tokens, ms] = [0, 0];
  for await (const line of data.readLines(input)) {
    if (line.trim() === "") continue;
    const document = JSON.parse(line) as Readonly<Record<string, string>>;
    for (const key of jsonKeys) tokens += tokenizer.encode(document[key] ?? "").length;
    ms = performance.now() - beganMs;
    if (ms > PLAIN_LOOP_MS) break;
  }
  return Math.round((1000 * tokens) / Math.max(1, ms));
}

async function tokenizerOf(flags: PreprocessFlags): Promise<data.Tokenizer> {
  const { tokenizer, tokenizerType, mergeFile } = flags;
  const vocabFile = flags.vocabFile ?? flags.vocab;
  if (tokenizer !== undefined) return data.loadTokenizer(tokenizer);
  if (tokenizerType === undefined)
    throw misused(`--tokenizer-type ${kinds.join(", ")}, or --tokenizer PATH`, "neither");
  if (vocabFile === undefined) throw misused(`--vocab-file with --tokenizer-type ${tokenizerType}`, "none");
  if (tokenizerType === "GPT2BPETokenizer") {
    if (mergeFile === undefined) throw misused(`--merge-file with --tokenizer-type ${tokenizerType}`, "none");
    return data.loadGpt2Tokenizer({ vocabPath: vocabFile, mergesPath: mergeFile });
  }
  // As in Megatron: words have at most 200 characters, and [MASK] in a text is plain text.
  return data.loadWordPiece(vocabFile, {
    lowercase: tokenizerType === "BertWordPieceLowerCase",
    maxCharacters: 200,
  });
}

/** The token that ends a document: GPT-2's <|endoftext|> or BERT's separator. */
function endOfDocument(tokenizer: data.Tokenizer, { tokenizerType }: PreprocessFlags): number {
  const { spec } = tokenizer;
  const json = spec.kind === "hugging-face" ? spec.tokenizer : {};
  const vocab = (json.model as { vocab?: Record<string, number> } | undefined)?.vocab ?? {};
  const added = json.added_tokens as readonly { content: string; id: number }[] | undefined;
  for (const name of ["<|endoftext|>", "[SEP]", "</s>"]) {
    const id = added?.find(({ content }) => content === name)?.id ?? vocab[name];
    if (id !== undefined) return id;
  }
  throw misused("--append-eod with a vocabulary that has <|endoftext|>, [SEP] or </s>", `${tokenizerType}`);
}

/** Punkt's folder for all languages, or its model of one. */
function sentencesOf({ lang, punkt }: PreprocessFlags): string | data.PunktModel {
  if (punkt === undefined) return languageOf(lang);
  const ofLanguage = join(punkt, lang);
  return data.readPunkt(existsSync(ofLanguage) ? ofLanguage : punkt);
}

function languageOf(name: string): string {
  const language = ownValue(languages, name.toLowerCase()) ?? (/^[a-z]{2}$/.test(name) ? name : undefined);
  if (language !== undefined) return language;
  throw misused(`--lang of ${Object.keys(languages).join(", ")}, or two letters`, name);
}

/** The vocabulary size as Megatron counts it: for BERT with [BOS] and [EOS], which its tokenizer adds. */
function megatronSize(
  tokenizer: data.Tokenizer,
  { tokenizerType, tokenizer: path }: PreprocessFlags,
): number {
  const isBert = path === undefined && tokenizerType !== "GPT2BPETokenizer";
  return isBert ? data.t5Vocabulary(tokenizer, 0).size : tokenizer.vocabSize;
}

function misused(expected: string, got: string): TroupeError {
  return new TroupeError("USAGE", { where: "preprocess", expected, got });
}
