import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { nativeInfo } from "../../src/entries/tensor.ts";
import { freePort, torchVariables } from "./launched-hosts.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Runs `troupe launch` as a launcher does on one of two hosts. */
async function launch(rank: number, port: number, ...args: readonly string[]) {
  const child = spawn(process.execPath, ["bin/troupe.mjs", "launch", "--host-deadline", "60", ...args], {
    cwd: root,
    env: { ...process.env, ...torchVariables(rank, 2, port) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [printed, complained] = [child.stdout.toArray(), child.stderr.toArray()];
  const [code] = (await once(child, "close")) as [number | null];
  return { code, printed: (await printed).join(""), complained: (await complained).join("") };
}

describe.skipIf(!nativeInfo().gloo)("a script that a launcher starts on several hosts", () => {
  const example = "examples/actors/launched.ts";

  it("opens a model on all of them, and has actors of its own on each", async () => {
    const port = await freePort();
    const [head, member] = await Promise.all([0, 1].map((rank) => launch(rank, port, example)));
    expect([head?.code, member?.code], `${head?.complained}${member?.complained}`).toEqual([0, 0]);
    expect(head?.printed).toBe(
      "round 0: 2 marks\nround 1: 2 marks\njudges-0: host 0, judges-1: host 1, rank-0: host 0, rank-1: host 1\n",
    );
    expect(member?.printed).toBe("");
  });

  it("is refused actors of its own before the hosts have joined", async () => {
    const { code, complained } = await launch(0, await freePort(), "test/fixtures/early-actors.ts");
    expect(code).toBe(1);
    expect(complained).toContain("[actors] expected all hosts to have joined, got none so far");
  });
});
