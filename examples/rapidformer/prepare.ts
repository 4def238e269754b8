// Makes what the three runs read, small and in a moment: pairs of sentences, a corpus with its indexed data, vocabularies, the
// weights of a small BERT that has learnt nothing, and a registry that gives them the names of the original listings.
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { saveHuggingFaceFolder } from "troupe/checkpoint";
import { loadGpt2Tokenizer, loadWordPiece, preprocess } from "troupe/data";
import { BertForPreTraining, configOfFile, weightBytes } from "troupe/models";
import { dematerialize, materialize } from "troupe/nn";

const who = ["the baker", "a sailor", "the old king", "my sister", "our teacher", "the doctor"];
const did = ["sold", "found", "painted", "carried", "lost", "mended"];
const what = [
  "a red boat",
  "the silver bell",
  "two horses",
  "an empty box",
  "the long letter",
  "a warm coat",
];
const when = ["in the morning", "at night", "last winter", "after the storm", "before noon", "on friday"];

/** Draws the same numbers each time. */
function* numbers(): Generator<number, never> {
  for (let state = 20220129; ; ) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state / 2 ** 32;
  }
}

/** Writes everything into a folder, unless it is there. */
export async function prepare(folder: string): Promise<void> {
  if (existsSync(join(folder, "troupe-hub.toml"))) return;
  rmSync(folder, { recursive: true, force: true });
  const draws = numbers();
  const pick = (words: readonly string[]) => words[Math.floor(draws.next().value * words.length)] as string;
  const write = (path: string, text: string) => {
    mkdirSync(join(folder, path, ".."), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  const fact = () => ({ who: pick(who), did: pick(did), what: pick(what), when: pick(when) });

  // The same said the other way round, or something else said straight.
  const row = () => {
    const first = fact();
    const isSame = draws.next().value < 0.5;
    const other = fact();
    const turned = `${first.when} ${first.who} ${first.did} ${first.what} .`;
    const second = isSame ? turned : `${other.who} ${other.did} ${other.what} ${other.when} .`;
    return [isSame ? 1 : 0, `${first.who} ${first.did} ${first.what} ${first.when} .`, second].join("\t");
  };
  const table = (rows: number) =>
    `label\tsentence1\tsentence2\n${Array.from({ length: rows }, row).join("\n")}\n`;
  write("glue/mrpc/train.tsv", table(256));
  write("glue/mrpc/validation.tsv", table(61));

  const words = [...new Set([...who, ...did, ...what, ...when].join(" ").split(" ")), "."];
  write("bert/vocab.txt", `${["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ...words].join("\n")}\n`);
  const sizes = { hidden_size: 64, num_hidden_layers: 2, num_attention_heads: 4, intermediate_size: 256 };
  const dropout = { hidden_dropout_prob: 0, attention_probs_dropout_prob: 0 };
  // As published files have it, and no model.
  const unread = { gradient_checkpointing: false, use_cache: true };
  const places = { vocab_size: 128, max_position_embeddings: 64 };
  const bert = { model_type: "bert", ...sizes, ...dropout, ...places, ...unread };
  const model = new BertForPreTraining(configOfFile(bert));
  materialize(model, { seed: 1 });
  await saveHuggingFaceFolder(join(folder, "bert"), { config: bert, weights: weightBytes(model) });
  dematerialize(model);

  const sentence = () => {
    const { who: by, did: done, what: of, when: at } = fact();
    return `${by[0]?.toUpperCase()}${by.slice(1)} ${done} ${of} ${at}.`;
  };
  const document = () => JSON.stringify({ text: Array.from({ length: 6 }, sentence).join(" ") });
  write("corpus.json", `${Array.from({ length: 1000 }, document).join("\n")}\n`);

  // GPT-2's pieces of one byte each: a vocabulary needs no merges.
  const printable = (byte: number) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  let next = 256;
  const symbols = Array.from({ length: 256 }, (_, byte) =>
    String.fromCodePoint(printable(byte) ? byte : next++),
  );
  const vocab = Object.fromEntries([...symbols, "<|endoftext|>"].map((symbol, id) => [symbol, id]));
  write("gpt2-vocab.json", JSON.stringify(vocab));
  write("gpt2-merges.txt", "#version: 0.2\n");

  const input = join(folder, "corpus.json");
  const files = { vocabPath: join(folder, "gpt2-vocab.json"), mergesPath: join(folder, "gpt2-merges.txt") };
  const gpt = await loadGpt2Tokenizer(files);
  await preprocess({
    input,
    keys: ["text"],
    outputPrefix: join(folder, "gpt_small"),
    tokenizer: gpt,
    endOfDocument: 256,
  });
  const pieces = await loadWordPiece(join(folder, "bert/vocab.txt"), { lowercase: true, maxCharacters: 200 });
  const outputPrefix = join(folder, "book_wiki_owtv2_small");
  await preprocess({ input, keys: ["text"], outputPrefix, tokenizer: pieces, sentencesOf: "en" });

  // Last, since it says that all is there.
  write(
    "troupe-hub.toml",
    `[models]
bert-base-cased = "bert"
bert-base-uncased = "bert"

[data]
"glue/mrpc" = "glue/mrpc"
gpt_small_text_document = "gpt_small_text_document"
book_wiki_owtv2_small_text_sentence = "book_wiki_owtv2_small_text_sentence"
`,
  );
}
