import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const cache = mkdtempSync(join(tmpdir(), "troupe-test-"));
afterAll(() => rmSync(cache, { recursive: true, force: true }));

/** Runs an example as a user does. @returns the numbers of the lines that match, in order */
async function run(example: string, line: RegExp): Promise<number[]> {
  const env = { ...process.env, TROUPE_CACHE: cache };
  const { stdout } = await promisify(execFile)(process.execPath, [`examples/${example}/train.ts`], {
    cwd: root,
    env,
  });
  return [...stdout.matchAll(line)].map(([, number]) => Number(number));
}

describe("examples of post-training", () => {
  it("grpo: sorts 9 of 10 held-out problems by a judge that says right or wrong", async () => {
    const rights = await run("grpo", /: (\d+\.\d) % right/g);
    expect(rights[0]).toBeLessThan(2);
    expect(rights.at(-1)).toBeGreaterThanOrEqual(90);
  });

  it("grpo: job and script are at most 60 lines", () => {
    const lines = ["job", "train"].map((name) =>
      readFileSync(join(root, `examples/grpo/${name}.ts`), "utf8")
        .trimEnd()
        .split("\n"),
    );
    expect(lines.flat().length).toBeLessThanOrEqual(60);
  });

  it("dpo: writes more of what was preferred", async () => {
    const shares = await run("dpo", /: (\d+\.\d) % vowels/g);
    expect(shares.at(-1)).toBeGreaterThan((shares[0] ?? 0) + 10);
  });

  it("chat: answers in words that it has learned", async () => {
    const script = (file: string, ...args: string[]) =>
      promisify(execFile)(process.execPath, [file, ...args], {
        cwd: root,
        env: { ...process.env, TROUPE_CACHE: cache },
      });
    const [chats, runs] = ["chats", "runs"].map((name) => join(cache, name)) as [string, string];
    await script("examples/chat/prepare.ts", chats);
    const settings = ["steps=200", "lr=0.002", "evaluateEvery=200", `data=${chats}`].flatMap((setting) => [
      "--set",
      setting,
    ]);
    const run = ["run", "examples/chat/job.ts", "--ranks", "2", "--checkpoint", runs, "--json", ...settings];
    const { stdout } = await script("bin/troupe.mjs", ...run);
    const [, perplexity] = /"perplexity":([\d.]+)/.exec(stdout) ?? [];
    expect(Number(perplexity)).toBeLessThan(1.5);
    const talking = execFile(process.execPath, ["bin/troupe.mjs", "chat", join(runs, "step-000200")], {
      cwd: root,
    });
    talking.stdin?.end("Hello, I am Vera.\nWhat is the opposite of hot?\n");
    const answers = (await talking.stdout?.toArray())?.join("");
    expect(answers).toMatch(/^Hello, \w+!\nThe opposite of \w+ is \w+\.\n$/);
  });

  it("distill: the student comes near its teacher on its own texts", async () => {
    const divergences = await run("distill", /(\d+\.\d+) nats/g);
    expect(divergences.at(-1)).toBeLessThan((divergences[0] ?? 0) / 3);
  });
});
