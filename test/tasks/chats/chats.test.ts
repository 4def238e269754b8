import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { dematerialize, materialize } from "../../../src/compute/nn/index.ts";
import { type Chat, type ChatMessage, ChatTemplate, tokenizerFromSpec } from "../../../src/entries/data.ts";
import { GPT2LMHeadModel } from "../../../src/entries/index.ts";
import { LlamaForCausalLM } from "../../../src/entries/models.ts";
import { chatLm } from "../../../src/entries/tasks.ts";
import { scope, type Tensor } from "../../../src/entries/tensor.ts";
import { chatIn } from "../../../src/library/data/index.ts";
import { sharedPath } from "../../fixtures/shared.ts";
import trl from "./trl.json" with { type: "json" };

const folder = mkdtempSync(join(tmpdir(), "troupe-chats-"));
afterAll(() => rmSync(folder, { recursive: true }));

const python = process.env.TROUPE_PYTHON;
const data = sharedPath("data");
const listOf = (x: Tensor) => Array.from(x.to("float64").contiguous().toTypedArray() as Float64Array);
const byte = tokenizerFromSpec({ kind: "byte" });

/** A chat whose answers are all learned. */
const chatOf = (messages: readonly ChatMessage[]): Chat => ({
  messages,
  learned: messages.filter(({ role }) => role === "assistant").map(() => true),
});

const chatML = `{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`;

describe("records of chats", () => {
  const said = [
    { role: "user", content: "a" },
    { role: "assistant", content: "b" },
  ];

  it.each([
    ["messages", { messages: said }],
    ["messages of a table with an empty prompt", { messages: said, prompt: null, completion: null }],
    [
      "conversations with from and value",
      {
        conversations: [
          { from: "human", value: "a" },
          { from: "gpt", value: "b" },
        ],
      },
    ],
    ["texts of prompt and completion", { prompt: "a", completion: "b" }],
    ["lists of prompt and completion", { prompt: said.slice(0, 1), completion: said.slice(1) }],
  ])("are read: %s", (_, record) => {
    expect(chatIn(record, "here")).toEqual({ messages: said, learned: [true] });
  });

  it("are learned but for answers of the prompt and those of weight 0", () => {
    const more = [...said, { role: "user", content: "c" }, { role: "assistant", content: "d", weight: 0 }];
    expect(chatIn({ messages: more }, "here").learned).toEqual([true, false]);
    expect(chatIn({ prompt: more.slice(0, 3), completion: "e" }, "here").learned).toEqual([false, true]);
  });

  it("are refused together, each by file and position", async () => {
    const path = join(folder, "bad.jsonl");
    const lines = [
      { messages: said },
      { messages: [{ role: "wizard", content: "a" }] },
      { prompt: "a" },
      { conversations: [{ from: "human", value: "a" }] },
      { text: "a" },
    ];
    writeFileSync(path, lines.map((line) => JSON.stringify(line)).join("\n"));
    const place = (index: number) => `${path}, example ${index}`;
    await expect(chatLm.read(path)).rejects.toThrow(
      `[data] expected a role of system, human, user, gpt, assistant, chatgpt, model, tool, function, observation at message 1 of ${place(2)}, got "wizard" ` +
        `(3 more: completion of ${place(3)}; ${place(4)}; ${place(5)})`,
    );
  });
});

describe("templates of chats", () => {
  it("are found beside a tokenizer, with its special tokens", async () => {
    const messages = [{ role: "user", content: "a" }];
    const config = {
      bos_token: { content: "<s>" },
      chat_template: "{{ bos_token }}{{ messages[0].content }}",
    };
    const write = (name: string, text: unknown) => writeFileSync(join(folder, name), JSON.stringify(text));
    await expect(ChatTemplate.load(folder)).rejects.toThrow("expected a chat template in");
    write("tokenizer_config.json", config);
    expect((await ChatTemplate.load(folder)).render(messages)).toBe("<s>a");
    const named = [
      { name: "tool_use", template: "no" },
      { name: "default", template: "yes" },
    ];
    write("tokenizer_config.json", { ...config, chat_template: named });
    expect((await ChatTemplate.load(folder)).render(messages)).toBe("yes");
    writeFileSync(join(folder, "chat_template.jinja"), "{{ bos_token }}!");
    expect((await ChatTemplate.load(folder)).render(messages)).toBe("<s>!");
    await expect(ChatTemplate.parse("{% if %}")).rejects.toThrow(
      "a chat template that @huggingface/jinja can read",
    );
  });

  it("say what ends an answer", async () => {
    expect((await ChatTemplate.parse(chatML)).end).toBe("<|im_end|>\n");
  });

  it("refuse a chat in their own words, with its place", async () => {
    const template = await ChatTemplate.parse("{{ raise_exception('roles must alternate') }}");
    const chat = chatOf([{ role: "assistant", content: "a" }]);
    expect(() => template.encode(chat, byte, "chat 7")).toThrow(
      '[data] expected a chat that its template can write at chat 7, got "roles must alternate"',
    );
  });

  it("refuse to go on for ever", async () => {
    const template = await ChatTemplate.parse(
      "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
    );
    const chat = chatOf([{ role: "assistant", content: "a" }]);
    expect(() => template.encode(chat, byte, "chat 7")).toThrow(
      "[data] expected a chat that its template writes within 5 s at chat 7, got none by then",
    );
  });

  it("refuse to tell an answer that is written in another way once more follows", async () => {
    const template = await ChatTemplate.parse(
      "{% for message in messages %}{{ message.content if loop.last else message.content | upper }}{% endfor %}",
    );
    const chat = chatOf([
      { role: "user", content: "a" },
      { role: "assistant", content: "b" },
      { role: "user", content: "c" },
      { role: "assistant", content: "d" },
    ]);
    expect(() => template.encode(chat, byte, "chat 7")).toThrow("another text of message 2");
  });

  it("mark answers for tokenizers of bytes", async () => {
    const template = await ChatTemplate.parse(chatML);
    const chat = chatOf([
      { role: "user", content: "aé" },
      { role: "assistant", content: "é" },
    ]);
    const { ids, learned } = template.encode(chat, byte, "");
    expect(byte.decode(ids)).toBe(template.render(chat.messages));
    expect(byte.decode(ids.filter((_, place) => learned[place]))).toBe("é<|im_end|>\n");
  });

  it.skipIf(python === undefined)(
    "write what transformers write, by each template that TRL carries",
    async () => {
      const script = fileURLToPath(new URL("templates.py", import.meta.url));
      const { stdout } = await promisify(execFile)(python as string, [script], { maxBuffer: 1 << 28 });
      const { found, tokens, trl: version } = JSON.parse(stdout);
      const differences = [];
      let numMarked = 0;
      for (const { name, template: text, messages, all, prompt } of found) {
        // Idefics writes a text as if it were a list of its characters.
        if (all.error !== undefined || name.startsWith("idefics")) continue;
        try {
          const template = await ChatTemplate.parse(text, tokens);
          const isSame = template.render(messages) === all.text;
          if (!isSame) differences.push(`${name}: ${JSON.stringify([template.render(messages), all.text])}`);
          if (
            prompt.text !== undefined &&
            template.render(messages.slice(0, -1), { forAnswer: true }) !== prompt.text
          )
            differences.push(`${name}: the prompt`);
          if (all.spans === null) continue;
          const { ids, learned } = template.encode(chatOf(messages), byte, name);
          const answers = byte.decode(ids.filter((_, place) => learned[place]));
          // Python counts characters, not UTF-16 units.
          const theirs = all.spans.map(([begin, end]: [number, number]) =>
            [...all.text].slice(begin, end).join(""),
          );
          if (answers !== theirs.join("")) differences.push(`${name}: ${JSON.stringify([answers, theirs])}`);
          numMarked++;
        } catch (error) {
          differences.push(`${name}: ${(error as Error).message}`);
        }
      }
      console.log(
        `TRL ${version}: ${found.length} texts, ${numMarked} with marks\n${differences.join("\n")}`,
      );
      expect(differences).toEqual([]);
    },
  );
});

describe.skipIf(data === undefined)("beside TRL's SFTTrainer", () => {
  const specials = trl.specials.map((content, index) => ({
    id: index === 0 ? 50256 : 50256 + index,
    content,
    special: true,
  }));
  /** GPT-2's tokenizer with more special tokens. */
  const tokenizer = (async () => {
    const [vocab, merges] = await Promise.all(
      ["vocab.json", "merges.txt"].map((name) =>
        readFile(join(data as string, `vocab/gpt2-${name}`), "utf8"),
      ),
    );
    const split = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true };
    return tokenizerFromSpec({
      kind: "hugging-face",
      tokenizer: {
        version: "1.0",
        ...{
          added_tokens: specials,
          normalizer: null,
          pre_tokenizer: split,
          post_processor: null,
          decoder: split,
        },
        model: {
          type: "BPE",
          vocab: JSON.parse(vocab as string),
          merges: (merges as string)
            .split("\n")
            .filter((line) => line !== "" && !line.startsWith("#version")),
        },
      },
    });
  })();
  const tokens = { bos_token: "<s>", eos_token: "</s>" };
  const examples = { train: (trl.messages as ChatMessage[][]).map(chatOf), validation: [] };
  const sizes = { vocab_size: 50261, n_embd: 16, n_head: 2, n_layer: 2, n_positions: trl.length };
  const config = { model_type: "gpt2", ...sizes, embd_pdrop: 0, attn_pdrop: 0, resid_pdrop: 0 };
  const datasetOf = async (template: string, isPacked: boolean) => {
    const { validation: _, ...train } = examples;
    return chatLm.dataset(train, {
      ...{ source: "here", config, seed: 0, length: trl.length, tokenizer: await tokenizer },
      chatTemplate: await ChatTemplate.parse(template, tokens),
      dynamicShapes: { window: 1, multiple: 1, isPacked },
    });
  };
  const templates = Object.entries(trl.templates);

  it.each(templates)("writes, encodes and marks each chat alike: %s", async (name, { template, chats }) => {
    const own = await ChatTemplate.parse(template, tokens);
    // Without marks in the template, answers are what lies between two texts of it.
    const bare = await ChatTemplate.parse(
      template.replaceAll(/\{%-? (end)?generation %\}\n? */g, ""),
      tokens,
    );
    for (const [index, { text, prompt, ids, learned }] of chats.entries()) {
      const chat = examples.train[index] as Chat;
      expect(own.render(chat.messages)).toBe(text);
      expect(own.render(chat.messages.slice(0, -1), { forAnswer: true })).toBe(prompt);
      const encoded = own.encode(chat, await tokenizer, "here");
      expect(encoded.ids).toEqual(ids);
      expect(encoded.learned.map(Number)).toEqual(learned);
      const change = name.includes("white space") || (name.includes("reasoning") && index === 2);
      if (!change) expect(bare.encode(chat, await tokenizer, "here")).toEqual(encoded);
    }
  });

  it.each(templates)(
    "trains on the same labels, a chat a row and packed: %s",
    async (_, { template, plain, packed }) => {
      const rowsOf = async (isPacked: boolean) => {
        const dataset = await datasetOf(template, isPacked);
        const { numSamples } = dataset.splits.train as { numSamples: number };
        const positions = Array.from({ length: numSamples }, (__, position) => position);
        return Promise.all(positions.map(async (position) => dataset.batch("train", position, 1)));
      };
      const sorted = (rows: readonly (readonly number[][])[]) =>
        rows.map((row) => JSON.stringify(row)).sort();
      const shifted = (labels: number[], positions: number[]) =>
        labels.map((label, place) => (positions[place] === 0 ? -100 : label));
      const alone = (await rowsOf(false)).map(({ inputIds, labels }) => [listOf(inputIds), listOf(labels)]);
      expect(sorted(alone)).toEqual(sorted(plain.map((row) => [row.input_ids, row.labels])));
      const together = (await rowsOf(true)).map(({ inputIds, labels, segments }) => {
        const bounds = listOf(segments as Tensor);
        const positions = listOf(inputIds).map(
          (__, place) => place - (bounds.findLast((bound) => bound <= place) as number),
        );
        return [listOf(inputIds), listOf(labels), positions];
      });
      expect(sorted(together)).toEqual(
        sorted(packed.map((row) => [row.input_ids, shifted(row.labels, row.position_ids), row.position_ids])),
      );
    },
  );

  it.each([
    ["GPT-2", () => new GPT2LMHeadModel(config)],
    [
      "LLaMA",
      () =>
        new LlamaForCausalLM({
          ...{ vocab_size: 50261, hidden_size: 16, num_attention_heads: 2, num_key_value_heads: 1 },
          ...{ intermediate_size: 24, num_hidden_layers: 2, max_position_embeddings: trl.length },
        }),
    ],
  ])("has the loss of plain arithmetic on chats of their own: %s", async (_, make) => {
    const [, { template }] = templates[1] as (typeof templates)[number];
    const [packed, alone] = [await datasetOf(template, true), await datasetOf(template, false)];
    const numSamples = (packed.splits.train as { numSamples: number }).numSamples;
    const batch = await packed.batch("train", 0, numSamples);
    const rows = await Promise.all(
      examples.train.map(async (__, position) => alone.batch("train", position, 1)),
    );
    scope(() => {
      const model = make();
      materialize(model, { seed: 5 });
      let [nats, count] = [0, 0];
      for (const { inputIds, labels } of rows) {
        const logits = model
          .forward(inputIds)
          .logits.to("float64")
          .contiguous()
          .toTypedArray() as Float64Array;
        const width = sizes.vocab_size;
        for (const [place, label] of listOf(labels).entries()) {
          if (place === 0 || label < 0) continue;
          const row = logits.subarray((place - 1) * width, place * width);
          nats += Math.log(row.reduce((sum, logit) => sum + Math.exp(logit), 0)) - (row[label] as number);
          count++;
        }
      }
      expect(chatLm.weigh(batch)).toBe(count);
      const { loss } = model.forward(batch) as { loss: Tensor };
      expect(Math.abs(loss.item() - nats / count)).toBeLessThan(2e-6);
      dematerialize(model);
    });
  });
});
