import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { checkVocabulary, type PreparedText, prepareText } from "../../src/library/data/text/prepare-text.ts";
import { HuggingFaceTokenizer } from "../../src/library/data/tokenizers/hugging-face.ts";
import { tokenizerFromSpec } from "../../src/library/data/tokenizers/load.ts";
import { newTokenArray, type TokenArray, tokenBytes } from "../../src/library/data/tokenizers/token-dtype.ts";
import { miniGpt2 } from "./mini-gpt2.ts";

let folder: string;
let cacheDir: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe-text-"));
  cacheDir = join(folder, "cache");
});
afterEach(() => rm(folder, { recursive: true }));

async function file(name: string, content: string | Uint8Array): Promise<string> {
  const path = join(folder, name);
  await mkdir(join(path, ".."), { recursive: true });
  await writeFile(path, content);
  return path;
}

async function textOf(prepared: PreparedText): Promise<string> {
  return tokenizerFromSpec(prepared.tokenizer).decode(await tokensOf(prepared));
}

async function tokensOf({ tokens }: PreparedText): Promise<TokenArray> {
  const read = newTokenArray(tokens.dtype, tokens.numTokens);
  tokenBytes(read).set(await readFile(tokens.path));
  return read;
}

async function refusal(body: Promise<unknown>): Promise<{ code: string; message: string }> {
  return body.then(
    () => Promise.reject(new Error("expected a refusal")),
    (error) => error,
  );
}

describe("a text may come from", () => {
  test("a file", async () => {
    const prepared = await prepareText({
      source: await file("a.txt", "hello"),
      tokenizer: "character",
      cacheDir,
    });
    expect(prepared.tokens).toMatchObject({ dtype: "uint8", numTokens: 5, vocabSize: 4 });
    expect(await textOf(prepared)).toBe("hello");
  });

  test("a directory: every file below it in the order of paths, but for hidden ones", async () => {
    await file("texts/b.txt", "2");
    await file("texts/a/z.txt", "1");
    await file("texts/a.txt", "0");
    await file("texts/.hidden", "x");
    await file("texts/.git/config", "x");
    const prepared = await prepareText({ source: join(folder, "texts"), tokenizer: "byte", cacheDir });
    expect(await textOf(prepared)).toBe("012");
  });

  test("a pattern, and a list in the order given", async () => {
    await file("lib/b.d.ts", "B");
    await file("lib/a.d.ts", "A");
    await file("lib/a.js", "x");
    const last = await file("odd[name].txt", "!");
    const source = [join(folder, "lib/*.d.ts"), last];
    expect(await textOf(await prepareText({ source, tokenizer: "byte", cacheDir }))).toBe("AB!");
  });

  test("bytes that are not UTF-8, for the byte tokenizer", async () => {
    const path = await file("bytes", Uint8Array.of(1, 255, 128));
    const prepared = await prepareText({ source: path, tokenizer: "byte", cacheDir });
    expect(Array.from(await tokensOf(prepared))).toEqual([1, 255, 128]);
  });
});

describe("a large text", () => {
  test("text that a pool of threads encodes in pieces gives the tokens of the complete text", async () => {
    const sentence = "the ant and the hill'll then\n\n  hunt 12 plants, é🎭 <|endoftext|>the end ";
    const text = Array.from({ length: 80_000 }, (_, index) => `${sentence}${index % 99}\n`).join("");
    const path = await file("large.txt", text);
    const tokenizer = new HuggingFaceTokenizer(miniGpt2);
    const prepared = await prepareText({ source: path, tokenizer: tokenizer.spec, cacheDir });
    expect(Buffer.byteLength(text)).toBeGreaterThan(4 << 20);
    expect(isDeepStrictEqual(await tokensOf(prepared), tokenizer.encode(text))).toBe(true);
  });
});

describe("the cache", () => {
  test("encodes a text once for each tokenizer, and again when the text changes", async () => {
    const source = await file("a.txt", "hello");
    const first = await prepareText({ source, tokenizer: "character", cacheDir });
    const again = await prepareText({ source, tokenizer: "character", cacheDir });
    const bytes = await prepareText({ source, tokenizer: "byte", cacheDir });
    expect(again).toEqual(first);
    expect(bytes.tokens.path).not.toBe(first.tokens.path);
    await appendFile(source, "!");
    const changed = await prepareText({ source, tokenizer: "character", cacheDir });
    expect(changed.tokens.path).not.toBe(first.tokens.path);
    expect(await textOf(changed)).toBe("hello!");
    expect((await readdir(cacheDir)).length).toBe(6);
  });

  test("replaces a damaged file", async () => {
    const source = await file("a.txt", "hello world");
    const { tokens } = await prepareText({ source, tokenizer: "byte", cacheDir });
    const whole = await readFile(tokens.path);
    await truncate(tokens.path, 3);
    await prepareText({ source, tokenizer: "byte", cacheDir });
    expect(await readFile(tokens.path)).toEqual(whole);
    await writeFile(tokens.path, "jello world");
    await prepareText({ source, tokenizer: "byte", cacheDir });
    expect(await readFile(tokens.path)).toEqual(whole);
    await writeFile(`${tokens.path}.json`, "{");
    await prepareText({ source, tokenizer: "byte", cacheDir });
    expect(JSON.parse(await readFile(`${tokens.path}.json`, "utf8")).numTokens).toBe(11);
  });

  test("is filled by several processes at once without harm", async () => {
    const source = await file("a.txt", "all's well that ends well\n".repeat(20_000));
    const script = `
      import { prepareText } from ${JSON.stringify(new URL("../../src/library/data/text/prepare-text.ts", import.meta.url).href)};
      console.log(JSON.stringify(await prepareText(JSON.parse(process.argv[1]))));`;
    const run = async () => {
      const options = JSON.stringify({ source, tokenizer: "character", cacheDir });
      const child = spawn(process.execPath, ["--input-type=module", "-e", script, options], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const closed = once(child, "close");
      const output = (await child.stdout.toArray()).join("");
      expect((await closed)[0]).toBe(0);
      return JSON.parse(output) as PreparedText;
    };
    const results = await Promise.all([run(), run(), run()]);
    for (const prepared of results) expect(prepared).toEqual(results[0]);
    expect(await textOf(results[0] as PreparedText)).toBe(await readFile(source, "utf8"));
    expect((await readdir(cacheDir)).length).toBe(2);
  });

  test("that cannot be written is named", async () => {
    const source = await file("a.txt", "hello");
    const { code, message } = await refusal(
      prepareText({ source, tokenizer: "byte", cacheDir: join(source, "cache") }),
    );
    expect(code).toBe("DATA_CACHE_FAILED");
    expect(message).toContain("TROUPE_CACHE");
  });
});

describe("refuses, in one line and before any work,", () => {
  const prepare = (source: string | string[], tokenizer = "character") =>
    prepareText({ source, tokenizer, cacheDir });

  test.each(["", "nothing.txt", "nothing/*.txt"])("the missing text %j", async (name) => {
    const { code, message } = await refusal(prepare(name && join(folder, name)));
    expect(code).toBe("DATA_MISSING");
    expect(message).not.toContain("\n");
  });

  test("an empty list, an empty folder, a list with one missing entry", async () => {
    await mkdir(join(folder, "empty"));
    expect((await refusal(prepare([]))).code).toBe("DATA_MISSING");
    expect((await refusal(prepare(join(folder, "empty")))).code).toBe("DATA_MISSING");
    expect((await refusal(prepare([await file("a.txt", "a"), join(folder, "b.txt")]))).code).toBe(
      "DATA_MISSING",
    );
  });

  test("an empty file", async () => {
    const { code, message } = await refusal(prepare(await file("empty.txt", "")));
    expect(code).toBe("DATA_EMPTY");
    expect(message).toContain("empty.txt, got 0 bytes");
  });

  test("what is no file, or cannot be read", async () => {
    expect((await refusal(prepare("/dev/zero"))).code).toBe("DATA_UNREADABLE");
    expect((await refusal(prepare(join(await file("a.txt", "a"), "below")))).code).toBe("DATA_UNREADABLE");
  });

  test("bytes that are not UTF-8, naming the file, also at its very end", async () => {
    const good = await file("good.txt", "good");
    const bad = await file("bad.txt", Uint8Array.of(0x61, 0xe2, 0x82));
    const { code, message } = await refusal(prepare([good, bad]));
    expect(code).toBe("DATA_UNREADABLE");
    expect(message).toContain("bad.txt");
    expect(await readdir(cacheDir).catch(() => [])).toEqual([]);
  });

  test.each(["byte", "character"])("a picture among texts, for the %s tokenizer too", async (tokenizer) => {
    const texts = join(folder, "texts");
    await mkdir(texts);
    await writeFile(join(texts, "a.txt"), "a text");
    const png = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
    for (const name of ["b.png", "c.png"]) await writeFile(join(texts, name), png);
    expect(await refusal(prepare(texts, tokenizer))).toMatchObject({
      code: "DATA_UNREADABLE",
      message: `[data] expected text in ${texts}, got a binary file, ${texts}/b.png and 1 more (leave what is no text out by a pattern such as "texts/**/*.txt")`,
    });
    expect((await refusal(prepare(join(texts, "c.png"), tokenizer))).message).toContain(
      "give a file of text",
    );
    expect(await readdir(cacheDir).catch(() => [])).toEqual([]);
    await expect(prepare(join(texts, "*.txt"), tokenizer)).resolves.toBeDefined();
  });

  test("a tokenizer that is not there", async () => {
    expect((await refusal(prepare(await file("a.txt", "a"), join(folder, "tokenizer")))).code).toBe(
      "TOKENIZER_INVALID",
    );
  });

  test("characters that a stored vocabulary does not know, leaving nothing behind", async () => {
    const source = await file("a.txt", "hello");
    const stored = { kind: "character", characters: "ehl" } as const;
    const { code, message } = await refusal(prepareText({ source, tokenizer: stored, cacheDir }));
    expect(code).toBe("TOKENIZER_UNKNOWN_CHARACTER");
    expect(message).toContain('"o" (U+006F)');
    expect(await readdir(cacheDir)).toEqual([]);
  });

  test("a vocabulary larger than the model's", async () => {
    const { tokens } = await prepare(await file("a.txt", "hello"));
    checkVocabulary(tokens, 4);
    expect(() => checkVocabulary(tokens, 3)).toThrow(
      expect.objectContaining({
        code: "DATA_VOCABULARY",
        message: expect.stringContaining("model's 3 tokens, got 4"),
      }),
    );
  });
});
