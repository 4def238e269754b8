import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dematerialize, materialize } from "../../src/compute/nn/index.ts";
import { saveHuggingFaceFolder } from "../../src/library/checkpoint/index.ts";
import { ChatTemplate, loadTokenizer } from "../../src/library/data/index.ts";
import { GPT2LMHeadModel, generate, weightBytes } from "../../src/library/models/index.ts";

const troupe = fileURLToPath(new URL("../../bin/troupe.mjs", import.meta.url));

/** Runs `troupe chat` with lines as its input. */
function chat(lines: string, ...args: string[]): Promise<{ code: number | null; out: string; err: string }> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [troupe, "chat", ...args], (_error, out, err) => {
      resolve({ code: child.exitCode, out, err });
    });
    child.stdin?.end(lines);
  });
}

describe("troupe chat", () => {
  const vocabulary = ["<pad>", "<|end|>", ..."abcdefghijklmnopqrstuvwxyz:", "\n"];
  const template =
    "{% for message in messages %}{{ message.role[0] + ':' + message.content + '<|end|>' }}{% endfor %}{% if add_generation_prompt %}a:{% endif %}";
  let folder: string;
  let model: GPT2LMHeadModel;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "troupe-chat-"));
    model = new GPT2LMHeadModel({
      vocab_size: vocabulary.length,
      n_embd: 16,
      n_layer: 1,
      n_head: 2,
      n_positions: 40,
    });
    materialize(model, { seed: 11 });
    await saveHuggingFaceFolder(folder, { config: model.configJson, weights: weightBytes(model) });
    const special = { special: true, single_word: false, lstrip: false, rstrip: false, normalized: false };
    const tokenizer = {
      ...{
        version: "1.0",
        normalizer: null,
        pre_tokenizer: null,
        post_processor: null,
        decoder: { type: "Fuse" },
      },
      added_tokens: vocabulary.slice(0, 2).map((content, id) => ({ id, content, ...special })),
      model: {
        type: "BPE",
        merges: [],
        vocab: Object.fromEntries(vocabulary.map((token, id) => [token, id])),
      },
    };
    writeFileSync(join(folder, "tokenizer.json"), JSON.stringify(tokenizer));
    writeFileSync(join(folder, "chat_template.jinja"), template);
  });
  afterAll(() => {
    dematerialize(model);
    rmSync(folder, { recursive: true });
  });

  it("answers each line with those before it in view, up to the end that the template puts after answers", async () => {
    const { code, out, err } = await chat(
      "hello\n\nagain\n",
      folder,
      "--max-new-tokens",
      "6",
      "--threads",
      "1",
    );
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const tokenizer = await loadTokenizer(folder);
    const written = await ChatTemplate.load(folder);
    const messages: { role: string; content: string }[] = [];
    const expected = ["hello", "again"].map((content) => {
      messages.push({ role: "user", content });
      const prompt = [...tokenizer.encode(written.render(messages, { forAnswer: true }))];
      const text = generate(model, prompt, { maxNewTokens: 6, temperature: 0, stopTokens: [1] }).slice(
        prompt.length,
      );
      const answer = tokenizer.decode(text.filter((token) => token !== 1));
      messages.push({ role: "assistant", content: answer });
      return `${answer}\n`;
    });
    expect(out).toBe(expected.join(""));
  });

  it("forgets the oldest messages once the model's context is full", async () => {
    const lines = "a message of some length\n".replaceAll(" ", "").repeat(4);
    const { code, out } = await chat(lines, folder, "--max-new-tokens", "8", "--threads", "1");
    expect(code).toBe(0);
    // The last answer is that to the message alone.
    const alone = await chat(
      lines.slice(0, lines.indexOf("\n") + 1),
      folder,
      "--max-new-tokens",
      "8",
      "--threads",
      "1",
    );
    expect(out.endsWith(alone.out)).toBe(true);
  });

  it("refuses a folder without a template, in one line", async () => {
    rmSync(join(folder, "chat_template.jinja"));
    const { code, err } = await chat("a\n", folder);
    expect(code).toBe(2);
    expect(err).toBe(
      `troupe: [chat template] expected a chat template in ${folder}, got none (chat_template.jinja, or chat_template in tokenizer_config.json)\n`,
    );
  });
});
