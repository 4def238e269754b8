import { spawn } from "node:child_process";
import {
  appendFileSync,
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
} from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { ofKind, type TroupeEvent } from "../../src/job/events/index.ts";
import { Workspace } from "../fixtures/run-tiny.ts";
import { canMakeDisks, SmallDisk } from "../fixtures/small-disk.ts";
import { recordsOf, scalarsOf } from "../sinks/tensorboard-file.ts";

const troupe = fileURLToPath(new URL("../../bin/troupe.mjs", import.meta.url));
const tiny = fileURLToPath(new URL("../fixtures/jobs/tiny.ts", import.meta.url));

interface Finished {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs the command; `onText` hears what it writes to standard error, as it does. */
function run(
  args: readonly string[],
  cwd: string,
  onText: (text: string) => void = () => {},
): Promise<Finished> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [troupe, "run", tiny, ...args], { cwd });
    let [out, err] = ["", ""];
    child.stdout.on("data", (data) => {
      out += data;
    });
    child.stderr.on("data", (data) => {
      err += data;
      onText(err);
    });
    child.on("close", (code) => resolve({ code, out, err }));
  });
}

const linesOf = (text: string) => text.trim().split("\n");

describe("troupe run writes its events", () => {
  const workspace = new Workspace();
  const data = ["--set", `data=${workspace.text}`, "--set", `cache=${workspace.path("cache")}`];
  afterAll(() => workspace[Symbol.dispose]());

  it("a run writes to all its sinks at once: pino's fields, TensorBoard, Prometheus, a trace", async () => {
    let scraped: Promise<string> | undefined;
    const flags = [
      "--pino",
      "--tensorboard",
      "tb",
      "--prometheus",
      "0",
      "--trace-file",
      "trace.json",
      "--histograms",
      "30",
    ];
    const { code, out, err } = await run(["--steps", "60", ...flags, ...data], workspace.folder, (text) => {
      const [, url] = /metrics at (\S+)/.exec(text) ?? [];
      if (url !== undefined) scraped ??= fetch(url).then((answer) => answer.text());
    });
    expect(code, err).toBe(0);
    const logged = linesOf(out).map((line) => JSON.parse(line));
    expect(logged.find(({ kind }) => kind === "run.finished")).toMatchObject({
      level: 30,
      time: expect.any(Number),
      pid: expect.any(Number),
      hostname: expect.any(String),
      msg: expect.stringMatching(/^done: 60 steps/),
    });
    expect(await scraped).toBeTypeOf("string");
    expect(readdirSync(workspace.path("tb"))).toEqual([expect.stringMatching(/^events\.out\.tfevents\./)]);
    expect(logged.filter(({ kind }) => kind === "histogram.measured").map(({ step }) => step)).toContain(60);
    const kept = linesOf(readFileSync(workspace.path("runs/tiny/events.jsonl"), "utf8")).map((line) =>
      JSON.parse(line),
    );
    expect(kept.filter(({ kind }) => kind === "step.finished")).toHaveLength(60);
    expect(kept.filter(({ kind }) => kind === "message.handled")).toEqual([]);
    const trace: { ph: string }[] = JSON.parse(readFileSync(workspace.path("trace.json"), "utf8"));
    expect(new Set(trace.map(({ ph }) => ph))).toEqual(new Set(["M", "X", "C", "i", "s", "f"]));
  });

  it("a run writes events.jsonl beside the checkpoints, and continues it after a torn line", async () => {
    const path = workspace.path("kept/events.jsonl");
    const train = (steps: string, ...more: string[]) =>
      run(["--steps", steps, ...data, "--checkpoint", "kept", ...more], workspace.folder);
    expect((await train("2")).code).toBe(0);
    const before = linesOf(readFileSync(path, "utf8"));
    const kinds = before.map((line) => JSON.parse(line).kind);
    expect(kinds[0]).toBe("actor.started");
    expect(kinds.filter((kind) => kind === "step.finished")).toHaveLength(2);
    appendFileSync(path, '{"kind":"step.fin');
    expect((await train("3", "--resume", "kept")).code).toBe(0);
    const after = linesOf(readFileSync(path, "utf8"));
    expect(after.slice(0, before.length)).toEqual(before);
    const added = after.slice(before.length + 1).map((line) => JSON.parse(line).kind);
    expect(added.filter((kind) => kind === "step.finished")).toHaveLength(1);
  });

  it.skipIf(!canMakeDisks)(
    "a run whose disk was full loses no event, and reports each failure once (needs root, for a small disk)",
    async () => {
      using disk = new SmallDisk(1 << 24);
      const at = (name: string) => join(disk.path, name);
      const log = openSync(at("console.log"), "a");
      const files = [
        "--events",
        at("events.jsonl"),
        "--tensorboard",
        at("tb"),
        "--trace-file",
        at("trace.json"),
      ];
      const args = ["run", tiny, "--steps", "1000000", ...data, "--json", ...files];
      const child = spawn(process.execPath, [troupe, ...args, "--checkpoint", "full"], {
        cwd: workspace.folder,
        stdio: ["ignore", "pipe", log],
      });
      closeSync(log);
      const reported: TroupeEvent[] = [];
      for await (const line of createInterface({ input: child.stdout as Readable })) {
        const event = JSON.parse(line) as TroupeEvent;
        reported.push(event);
        if (event.kind === "step.finished" && event.step === 2) disk.fill();
        const numOf = (kind: TroupeEvent["kind"]) => reported.filter((each) => each.kind === kind).length;
        if (event.kind === "output.failed" && numOf("output.failed") === 3) disk.free();
        if (event.kind === "output.resumed" && numOf("output.resumed") === 3) child.kill("SIGINT");
      }
      const kept = linesOf(readFileSync(at("events.jsonl"), "utf8")).map((line) => JSON.parse(line));
      const stepsOf = (events: readonly TroupeEvent[]) =>
        events.filter(ofKind("step.finished")).map(({ step }) => step);
      expect(stepsOf(kept)).toEqual(stepsOf(reported));
      expect(kept.map(({ kind }) => kind)).toContain("run.finished");
      const failed = reported.filter(ofKind("output.failed"));
      expect(failed.map(({ error }) => error.code)).toEqual(["ENOSPC", "ENOSPC", "ENOSPC"]);
      expect(new Set(failed.map(({ output }) => output)).size).toBe(3);
      expect(reported.filter(ofKind("output.resumed")).map(({ numLost }) => numLost)).toEqual([0, 0, 0]);
      const [records = ""] = readdirSync(at("tb"));
      const losses = recordsOf(readFileSync(join(at("tb"), records)))
        .flatMap(scalarsOf)
        .filter(({ tag }) => tag === "loss/train");
      expect(losses.map(({ step }) => step)).toEqual(stepsOf(reported));
      expect(JSON.parse(readFileSync(at("trace.json"), "utf8")).length).toBeGreaterThan(100);
    },
  );

  it.skipIf(!canMakeDisks)(
    "to the console too, which lacks no line of a log whose disk was full (needs root, for a small disk)",
    async () => {
      using disk = new SmallDisk();
      const path = join(disk.path, "console.log");
      const log = openSync(path, "a");
      const args = ["run", tiny, "--steps", "1000000", "--log-every", "1", ...data];
      // A pipe can be opened by its path, where what Node makes for standard output, a socket, cannot.
      const shell = 'exec "$0" "$@" --events /dev/fd/3 3> >(cat)';
      const child = spawn("bash", ["-c", shell, process.execPath, troupe, ...args], {
        cwd: workspace.folder,
        stdio: ["ignore", "pipe", log],
      });
      closeSync(log);
      const reported: TroupeEvent[] = [];
      for await (const line of createInterface({ input: child.stdout as Readable })) {
        const event = JSON.parse(line) as TroupeEvent;
        reported.push(event);
        if (event.kind === "step.finished" && event.step === 2) disk.fill();
        if (event.kind === "output.failed") disk.free();
        if (event.kind === "output.resumed") child.kill("SIGINT");
      }
      const ofConsole = { output: "standard error" };
      expect(reported.filter(ofKind("output.failed"))).toMatchObject([
        { ...ofConsole, error: { code: "ENOSPC" } },
      ]);
      expect(reported.filter(ofKind("output.resumed"))).toMatchObject([{ ...ofConsole, numLost: 0 }]);
      const lines = linesOf(readFileSync(path, "utf8")).flatMap(
        (line) => /^step +(\d+)\//.exec(line)?.[1] ?? [],
      );
      // The line of which only a part fitted on the disk is there a second time, complete.
      expect([...new Set(lines.map(Number))]).toEqual(
        reported.filter(ofKind("step.finished")).map(({ step }) => step),
      );
    },
  );

  it("a run writes nothing into its folder after another process has moved it away, and no other run may use that folder", async () => {
    const folder = workspace.path("taken");
    const args = ["--steps", "40", ...data, "--checkpoint", folder, "--checkpoint-every", "10"];
    let isTaken = false;
    const { code, err } = await run(args, workspace.folder, (text) => {
      if (isTaken || !/^saved .*step-000010/m.test(text)) return;
      isTaken = true;
      renameSync(folder, `${folder}-away`);
    });
    expect(err).toMatch(/step 40\/40/);
    expect(err).toMatch(/troupe: \[checkpoint\] .*taken/);
    expect(code).toBe(1);
    expect(existsSync(folder)).toBe(false);
    // The record is the run's own wherever it lies.
    expect(readFileSync(join(`${folder}-away`, "events.jsonl"), "utf8")).toMatch(/"kind":"run\.finished"/);
  });

  it("nowhere but to the console with --no-events", async () => {
    const { code } = await run(
      ["--steps", "1", ...data, "--checkpoint", "bare", "--no-events"],
      workspace.folder,
    );
    expect(code).toBe(0);
    expect(readdirSync(workspace.path("bare")).toSorted()).toEqual(["latest", "run.json", "step-000001"]);
  });
});
