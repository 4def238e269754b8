// npx node examples/lemmas/prepare.ts TREEBANK FOLDER: of a Universal Dependencies treebank (…dev.conllu, …test.conllu) the words with
// the form that a dictionary has them under, as train.tsv and dev.tsv, and a tokenizer of single letters for both.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [treebank = "UD_English-EWT", folder = "lemmas"] = process.argv.slice(2);

/** Lowercase words of a part of the treebank that change, or might: nouns, verbs and adjectives. */
function formsIn(part: "dev" | "test"): Map<string, string> {
  const files = existsSync(treebank) ? readdirSync(treebank) : [];
  const file = files.find((name) => name.endsWith(`${part}.conllu`));
  if (file === undefined) {
    console.error(
      `[lemmas] expected a file …${part}.conllu in ${treebank}, got none (git clone https://github.com/UniversalDependencies/UD_English-EWT)`,
    );
    process.exit(2);
  }
  const forms = new Map<string, string>();
  for (const line of readFileSync(join(treebank, file), "utf8").split("\n")) {
    const [id = "", word = "", lemma = "", tag = ""] = line.split("\t");
    if (/^\d+$/.test(id) && /^(NOUN|VERB|ADJ)$/.test(tag) && /^[a-z]+$/.test(word) && /^[a-z]+$/.test(lemma))
      forms.set(word, lemma);
  }
  return forms;
}

const train = formsIn("test");
// No word is in both the training and the held-out set.
const held = new Map([...formsIn("dev")].filter(([word]) => !train.has(word)));
const table = (forms: ReadonlyMap<string, string>) =>
  ["source\ttarget", ...[...forms].map((pair) => pair.join("\t")), ""].join("\n");

const specials = ["<pad>", "</s>", "<unk>"];
const letters = [..."abcdefghijklmnopqrstuvwxyz"];
const tokenizer = {
  version: "1.0",
  added_tokens: specials.map((content, id) => ({
    id,
    content,
    special: true,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
  })),
  normalizer: null,
  pre_tokenizer: null,
  post_processor: null,
  decoder: null,
  model: {
    type: "BPE",
    vocab: Object.fromEntries([...specials, ...letters].map((token, id) => [token, id])),
    merges: [],
    unk_token: "<unk>",
  },
};

mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, "train.tsv"), table(train));
writeFileSync(join(folder, "dev.tsv"), table(held));
writeFileSync(join(folder, "tokenizer.json"), JSON.stringify(tokenizer));
console.log(`${train.size} words to learn, ${held.size} others held out, in ${folder}`);
