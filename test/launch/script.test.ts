import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { nativeInfo } from "../../src/entries/tensor.ts";
import { freePort, torchVariables } from "./launched-hosts.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

function start(rank: number, port: number, script: string) {
  const child = spawn(process.execPath, ["bin/troupe.mjs", "launch", "--host-deadline", "60", script], {
    cwd: root,
    env: { ...process.env, ...torchVariables(rank, 2, port) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

/** Runs `troupe launch` as a launcher does on one of two hosts. @param onLine - called with each line of output */
async function launch(rank: number, port: number, script: string, onLine = (_line: string) => {}) {
  const child = start(rank, port, script);
  createInterface({ input: child.stdout }).on("line", onLine);
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

  it("has an actor of a host that is lost on one that is left, and goes on", async () => {
    const port = await freePort();
    const script = "test/fixtures/launched-judges.ts";
    const ready = Promise.withResolvers<void>();
    const head = launch(0, port, script, () => ready.resolve());
    const member = start(1, port, script);
    await Promise.race([ready.promise, head]);
    member.kill("SIGKILL");
    const { code, printed, complained } = await head;
    expect(printed, complained).toBe(
      "judges-0: host 0, judges-1: host 1, rank-0: host 0, rank-1: host 1\n" +
        "2 texts, marks 3 3; judges-0: host 0, judges-1: host 0, rank-0: host 0, rank-1: host 0\n",
    );
    expect(code).toBe(0);
  });

  it("has a generator on another host, and a further model, through deaths and the loss of that host", async () => {
    const port = await freePort();
    const arePlaced = Promise.withResolvers<void>();
    const head = launch(0, port, "test/fixtures/launched-copies.ts", (line) => {
      if (line.startsWith("frozen-1-rank-0: 1")) arePlaced.resolve();
    });
    const member = start(1, port, "test/fixtures/launched-copies.ts");
    await Promise.race([arePlaced.promise, head]);
    member.kill("SIGKILL");
    const { code, printed, complained } = await head;
    expect(printed.split("\n"), complained).toEqual([
      "before a step: true",
      "apart: true, true",
      "followed to 2: true",
      "after the death of a generator: true",
      "followed a policy that died to 3: true",
      "followed through its own death to 4: true",
      "the reference stayed: true",
      "a copy of the judge: true",
      "judge: true",
      "frozen-1-rank-0: 1, frozen-2-rank-0: 0, frozen-2-rank-1: 1, judge-frozen-3-rank-0: 1, judge-rank-0: 1, judge-rank-1: 0, rank-0: 0, rank-1: 1",
      "after the loss of a host: true, true",
      "judge: true",
      "frozen-1-rank-0: 0, frozen-2-rank-0: 0, frozen-2-rank-1: 0, judge-frozen-3-rank-0: 0, judge-rank-0: 0, judge-rank-1: 0, rank-0: 0, rank-1: 0",
      "",
    ]);
    expect(code).toBe(0);
  });

  it("has a host that comes late take part, as long as it may open models", async () => {
    const port = await freePort();
    const script = "test/fixtures/launched-late.ts";
    const members = [start(1, port, script)];
    const { code, printed, complained } = await launch(0, port, script, (line) => {
      if (/rank-\d: 1/.test(line) && !line.includes("tokens")) members.at(-1)?.kill("SIGKILL");
      if (/model is/.test(line)) members.push(start(1, port, script));
    });
    expect(printed.split("\n"), complained).toEqual([
      "rank-0: 0, rank-1: 1, second-rank-0: 0",
      "the first model is closed",
      "second-rank-0: 0, third-rank-0: 1, third-rank-1: 0",
      "no model is open",
      "2 tokens; rank-0: 0, rank-1: 1",
      "",
    ]);
    expect(code).toBe(0);
    const last = members.at(-1);
    expect(last?.exitCode ?? (last && (await once(last, "close"))[0])).toBe(0);
  });

  it("has its next model end where a host receives a signal while none is open", async () => {
    const port = await freePort();
    const script = "test/fixtures/launched-signalled.ts";
    const member = start(1, port, script);
    const { printed, complained } = await launch(0, port, script, (line) => {
      if (line === "no model is open") member.kill("SIGTERM");
    });
    expect(printed.split("\n"), complained).toEqual([
      "no model is open",
      "received SIGTERM",
      "RUN_STOPPED",
      "2 tokens",
      "",
    ]);
  });

  it("is reported with its first error, where disposing threw too", async () => {
    const { code, complained } = await launch(0, await freePort(), "test/fixtures/ends-twice.ts");
    expect(code).toBe(1);
    expect(complained).toContain("troupe: the first mistake\n  at test/fixtures/ends-twice.ts:3:7");
  });

  it("is refused actors of its own before the hosts have joined", async () => {
    const { code, complained } = await launch(0, await freePort(), "test/fixtures/early-actors.ts");
    expect(code).toBe(1);
    expect(complained).toContain("[actors] expected all hosts to have joined, got none so far");
  });
});
