// npx node examples/chat/prepare.ts [FOLDER] [SEED]: small chats, and a model folder without weights that is to learn from them:
// train.jsonl and dev.jsonl, a tokenizer of single letters with its chat template, and the model's config.json.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [folder = "chats", seed = "1"] = process.argv.slice(2);

/** Mulberry32: numbers in [0, 1) that depend on the seed alone. */
let state = Number(seed);
function draw(): number {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), state | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
}
const below = (count: number) => Math.floor(draw() * count);
const oneOf = <T>(items: readonly T[]) => items[below(items.length)] as T;

const days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const opposites = [
  "hot cold",
  "big small",
  "old new",
  "wet dry",
  "up down",
  "open shut",
  "fast slow",
  "dark bright",
];
const pairs = opposites
  .map((pair) => pair.split(" "))
  .flatMap(([one, other]) => [
    [one, other],
    [other, one],
  ]);
const names =
  "Ada Ben Cleo Dan Eva Finn Gus Hana Ivan June Kai Lena Max Nora Otto Pia Rosa Sam Tara Uma Vera Will Yara Zoe".split(
    " ",
  );

/** A question and its answer. */
type Turn = readonly [question: string, answer: string];

function turns(name: string): Turn[] {
  const [a, b, day, [word, other] = []] = [below(6), below(6), below(7), oneOf(pairs)];
  return [
    [`What is ${a} plus ${b}?`, `${a} plus ${b} is ${a + b}.`],
    [`Which day comes after ${days[day]}?`, `${days[(day + 1) % 7]}.`],
    [`What is the opposite of ${word}?`, `The opposite of ${word} is ${other}.`],
    ["What is my name?", `Your name is ${name}.`],
  ];
}

function chat(): object {
  const name = oneOf(names);
  const greeting: Turn = [`Hello, I am ${name}.`, `Hello, ${name}!`];
  const asked = Array.from({ length: 1 + below(5) }, () => oneOf(turns(name)));
  const messages = [greeting, ...asked].flatMap(([question, answer]) => [
    { role: "user", content: question },
    { role: "assistant", content: answer },
  ]);
  return { messages };
}

const lines = (count: number) => Array.from({ length: count }, () => `${JSON.stringify(chat())}\n`).join("");

const specials = ["<pad>", "<|start|>", "<|end|>"];
const letters = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index));
const vocabulary = [...specials, "\n", ...letters];
const added = { special: true, single_word: false, lstrip: false, rstrip: false, normalized: false };
const tokenizer = {
  version: "1.0",
  added_tokens: specials.map((content, id) => ({ id, content, ...added })),
  normalizer: null,
  pre_tokenizer: null,
  post_processor: null,
  decoder: { type: "Fuse" },
  model: {
    type: "BPE",
    vocab: Object.fromEntries(vocabulary.map((token, id) => [token, id])),
    merges: [],
    unk_token: "<pad>",
  },
};
const template = `{% for message in messages %}
{{ '<|start|>' + message.role + '\\n' + message.content + '<|end|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|start|>assistant\\n' }}{% endif %}`;
const config = {
  model_type: "llama",
  architectures: ["LlamaForCausalLM"],
  vocab_size: vocabulary.length,
  hidden_size: 128,
  intermediate_size: 384,
  num_hidden_layers: 3,
  num_attention_heads: 4,
  max_position_embeddings: 512,
  pad_token_id: 0,
  eos_token_id: 2,
};

mkdirSync(folder, { recursive: true });
const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
write("train.jsonl", lines(8000));
write("dev.jsonl", lines(200));
write("tokenizer.json", JSON.stringify(tokenizer));
write("chat_template.jinja", template);
write("config.json", JSON.stringify(config, undefined, 2));
console.log(`8000 chats to learn, 200 held out, in ${folder}`);
