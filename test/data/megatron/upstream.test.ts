import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import {
  type BertSample,
  IndexedDataset,
  type IndexedFormat,
  IndexedWriter,
  loadWordPiece,
  maskVocabulary,
  megatronBertSamples,
  megatronGptSamples,
  megatronT5Samples,
  type T5Sample,
  t5Vocabulary,
} from "../../../src/library/data/index.ts";

// A checkout of Megatron-LM of 2022 (0c9e6a16) with megatron/data/helpers compiled, and a Python with torch and numpy.
const { TROUPE_MEGATRON: megatron, TROUPE_PYTHON: python = "python3" } = process.env;
const NUM_CORPORA = Number(process.env.TROUPE_MEGATRON_CORPORA ?? 10);
/** Seed that draws the corpora, their seeds, lengths, splits and weights. */
const SEED = process.env.TROUPE_MEGATRON_SEED ?? "99";

type Digest = readonly [length: number, sha256: string] | null;
interface Case {
  readonly prefix: string;
  readonly seed: number;
  readonly length: number;
  readonly samples: readonly [number, number, number];
  readonly split: string;
  readonly short: number;
  readonly mask: number;
  readonly gpt: readonly Digest[] | null;
  readonly bert: readonly Digest[] | null;
  readonly bertAlone: readonly Digest[] | null;
  readonly t5: readonly Digest[] | null;
  readonly blend?: readonly string[];
  readonly gptOfBlend?: readonly Digest[] | null;
}
type Splits<T> = Readonly<Partial<Record<string, { readonly length: number; at(index: number): T }>>>;

function digestsOf<T>(splits: Splits<T>, listsOf: (sample: T) => readonly ArrayLike<number>[]): Digest[] {
  return ["train", "validation", "test"].map((name) => {
    const samples = splits[name];
    if (samples === undefined) return null;
    const hash = createHash("sha256");
    for (let index = 0; index < Math.min(samples.length, 30); index++)
      for (const list of listsOf(samples.at(index)))
        hash.update(new Uint8Array(BigInt64Array.from(Array.from(list), BigInt).buffer));
    return [samples.length, hash.digest("hex")];
  });
}

const filesOf = (prefix: string) => [".bin", ".idx"].map((end) => readFileSync(prefix + end).toString("hex"));

/** Reads a dataset and writes it again, both with this package. */
function rewritten(prefix: string, format: IndexedFormat): string[] {
  using data = IndexedDataset.open(prefix);
  using writer = new IndexedWriter(`${prefix}-again`, data.dtype, format);
  for (let document = 0; document + 1 < data.documents.length; document++) {
    for (let index = Number(data.documents[document]); index < Number(data.documents[document + 1]); index++)
      writer.addSequence(data.get(index));
    writer.endDocument();
  }
  writer.finish();
  return filesOf(`${prefix}-again`);
}

it.skipIf(megatron === undefined)(
  "random corpora that Megatron-LM wrote in both formats are written again to the byte, and their samples are those of its own code, whatever the seed, length, split and blend (where TROUPE_MEGATRON names it)",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
    const script = fileURLToPath(new URL("upstream.py", import.meta.url));
    execFileSync(python, [script, megatron as string, folder, `${NUM_CORPORA}`, SEED], { stdio: "ignore" });
    const cases = JSON.parse(readFileSync(join(folder, "reference.json"), "utf8")) as Case[];
    const tokenizer = await loadWordPiece(join(folder, "vocab.txt"), { lowercase: true, maxCharacters: 200 });
    const ofBert = ({ tokens, types, labels, isRandom, lossMask, paddingMask }: BertSample) =>
      [tokens, types, labels, [Number(isRandom)], lossMask, paddingMask] as const;
    const ofT5 = ({ tokens, decoderTokens, labels, lossMask }: T5Sample) =>
      [tokens, decoderTokens, labels, lossMask] as const;
    let compared = 0;
    for (const {
      prefix,
      samples,
      mask,
      short,
      gpt,
      bert,
      bertAlone,
      t5,
      blend,
      gptOfBlend,
      ...given
    } of cases) {
      const [train, validation, test] = samples;
      const common = { ...given, dataPath: prefix, numSamples: { train, validation, test } };
      const masked = { ...common, maskProbability: mask, shortProbability: short };
      const ofWords = { ...masked, vocabulary: maskVocabulary(tokenizer) };
      const ofSpans = { ...masked, decoderLength: given.length, vocabulary: t5Vocabulary(tokenizer, 100) };
      const own = [
        [gpt, () => digestsOf(megatronGptSamples(common), (tokens) => [tokens])],
        [
          gptOfBlend ?? null,
          () => digestsOf(megatronGptSamples({ ...common, dataPath: blend ?? [] }), (tokens) => [tokens]),
        ],
        [bert, () => digestsOf(megatronBertSamples({ ...ofWords, nextSentence: true }), ofBert)],
        [bertAlone, () => digestsOf(megatronBertSamples({ ...ofWords, nextSentence: false }), ofBert)],
        [t5, () => digestsOf(megatronT5Samples(ofSpans), ofT5)],
      ] as const;
      for (const [reference, make] of own) {
        if (reference === null) continue;
        expect(make(), prefix).toEqual(reference);
        compared += 1;
      }
      expect(rewritten(`${prefix}`, "mmap")).toEqual(filesOf(prefix));
      expect(rewritten(`${prefix}-cached`, "cached")).toEqual(filesOf(`${prefix}-cached`));
    }
    expect(compared).toBeGreaterThan(2.5 * NUM_CORPORA);
    rmSync(folder, { recursive: true });
  },
);
