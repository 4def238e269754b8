import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { Workspace } from "../fixtures/run-tiny.ts";

const troupe = fileURLToPath(new URL("../../bin/troupe.mjs", import.meta.url));
const tiny = fileURLToPath(new URL("../fixtures/jobs/tiny.ts", import.meta.url));

interface Finished {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function execute(command: string, args: readonly string[], cwd: string): Promise<Finished> {
  return new Promise((resolve) => {
    const child = execFile(command, [...args], { cwd }, (_error, out, err) => {
      resolve({ code: child.exitCode, out, err });
    });
  });
}

const run = (args: readonly string[], cwd: string) => execute(process.execPath, [troupe, ...args], cwd);

describe("troupe run", () => {
  const workspace = new Workspace();
  const data = ["--set", `data=${workspace.text}`, "--set", `cache=${workspace.path("cache")}`];
  const train = (...args: string[]) => run(["run", tiny, "--steps", "4", ...data, ...args], workspace.folder);
  afterAll(() => workspace[Symbol.dispose]());

  it("exits with 0, writes a checkpoint folder of the job's name, and tells its progress on standard error", async () => {
    const { code, out, err } = await train("--ranks", "2", "--zero", "3");
    expect(err).toMatch(/4\/4/);
    expect({ code, out }).toEqual({ code: 0, out: "" });
    const files = ["events.jsonl", "latest", "run.json", "step-000004"];
    expect(readdirSync(workspace.path("runs/tiny"))).toEqual(files);
    // Starting another run loses no earlier one.
    expect((await train()).code).toBe(0);
    expect(readdirSync(workspace.path("runs/tiny-2"))).toEqual(files);
    expect(readdirSync(workspace.path("runs/tiny"))).toEqual(files);
  });

  it("writes nothing with --checkpoint none, and refuses beside it what is for a folder", async () => {
    using alone = new Workspace();
    const none = ["run", tiny, "--steps", "4", ...data, "--checkpoint", "none"];
    const before = readdirSync(alone.folder);
    const { code, err } = await run(none, alone.folder);
    expect(err).toMatch(/4\/4/);
    expect(code).toBe(0);
    expect(readdirSync(alone.folder)).toEqual(before);
    const refused = await run([...none, "--checkpoint-every", "2"], alone.folder);
    expect(refused.err).toMatch(/checkpoint\.dir to be a folder, got undefined \(it may be left out only/);
    expect(refused.code).toBe(2);
  });

  it("prints every event as a JSON line with --json, losses with all their digits", async () => {
    const first = await train("--ranks", "2", "--json", "--checkpoint", workspace.path("a"));
    const offload = ["--offload-parameters", "nvme", "--offload-dir", workspace.folder, "--prefetch", "64KB"];
    const second = await train("--ranks", "2", ...offload, "--json", "--checkpoint", workspace.path("b"));
    const losses = ({ out }: Finished) =>
      out
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as { kind: string; lossNats: number })
        .filter(({ kind }) => kind === "step.finished")
        .map(({ lossNats }) => lossNats);
    expect(losses(first)).toHaveLength(4);
    expect(losses(second)).toEqual(losses(first));
    expect(first.out).toMatch(/"lossNats":\d\.\d{14,}/);
  });

  it("does about an anomaly what --anomaly says, and refuses what nothing can be done about", async () => {
    const wrong = ["--set", "fault=nan", "--set", "faultRank=0", "--set", "faultAt=1", "--json"];
    const skipped = await train(
      ...wrong,
      "--anomaly",
      "loss=skip",
      "--checkpoint",
      workspace.path("skipped"),
    );
    expect(skipped.code).toBe(0);
    expect(skipped.out).toMatch(/"kind":"anomaly.detected","step":2,"anomaly":"loss-not-finite".*"skipped"/);
    const refused = await train("--anomaly", "loss=tell");
    expect(refused).toMatchObject({ code: 2, out: "" });
    expect(refused.err).toContain("expected anomalies.loss to be stop or skip or rewind, got tell");
    expect((await train("--anomaly", "loss")).err).toContain("expected --anomaly WHAT=POLICY");
  });

  it("saves as often as its options say, and keeps the checkpoints that they name", async () => {
    const dir = workspace.path("kept");
    const every = ["--checkpoint-every", "1", "--checkpoint-in-memory-every", "2"];
    const keep = ["--checkpoint-keep-last", "1", "--checkpoint-keep-every", "3"];
    const { code, out } = await train("--checkpoint", dir, ...every, ...keep, "--json");
    expect(code).toBe(0);
    expect(out.match(/"kind":"checkpoint.saved"/g)).toHaveLength(4);
    const kept = readdirSync(dir).filter((name) => name.startsWith("step-"));
    expect(kept).toEqual(["step-000003", "step-000004"]);
    const taken = await train("--checkpoint", dir);
    expect(taken).toMatchObject({ code: 2, out: "" });
    expect(taken.err).toContain(`up to step 4 (go on with it: --resume ${dir}; remove it: --overwrite`);
    const refused = await train("--checkpoint", dir, "--overwrite", "--checkpoint-max-staged", "1kB");
    expect(refused.code).toBe(1);
    expect(refused.err).toMatch(/expected a save to copy at most 1000 bytes, got \d+/);
  });

  it("has a folder of its own where another run of the job is under way, though both begin at once", async () => {
    const args = [...["run", tiny, "--steps", "4", ...data], "--no-events"];
    const cwd = workspace.path("at once");
    mkdirSync(cwd);
    const both = await Promise.all([run(args, cwd), run(args, cwd)]);
    expect(both).toMatchObject([{ code: 0 }, { code: 0 }]);
    expect(readdirSync(join(cwd, "runs")).toSorted()).toEqual(["tiny", "tiny-2"]);
  });

  it("resumes from a folder of checkpoints", async () => {
    const dir = workspace.path("c");
    expect((await train("--checkpoint", dir)).code).toBe(0);
    const { code, out } = await run(
      ["run", tiny, "--steps", "6", ...data, "--resume", dir, "--json"],
      workspace.folder,
    );
    expect(code).toBe(0);
    expect(out).toContain('"firstStep":4');
    expect(out).toContain('"changes":[{"of":"run","name":"steps","was":"4","is":"6"}]');
    const printed = await run(["run", tiny, "--resume", dir, "--print-config"], workspace.folder);
    expect(printed.out).toMatch(/^data = ".*" +# checkpoint$/m);
    const other = await run(["run", tiny, "--resume", dir, "--set", "batch=8"], workspace.folder);
    expect(other.code).toBe(2);
    expect(other.err).toContain(
      "batchSize was 4, is 8 (go back to that, or let it change: --change batchSize)",
    );
  });

  const refusals: [string, string[], number, RegExp][] = [
    [
      "an unknown flag",
      ["run", tiny, "--rank", "2"],
      2,
      /expected an option of troupe run, got --rank \(did you mean --ranks\?\)/,
    ],
    [
      "a job that is not there",
      ["run", "nowhere.ts"],
      2,
      /expected a job's module at nowhere\.ts, got no such file/,
    ],
    [
      "a port that is none",
      ["run", tiny, "--prometheus", "-1"],
      2,
      /expected output\.prometheus\.port to be a whole number from 0 to 65535, got -1 \(from --prometheus\)/,
    ],
    [
      "a folder for TensorBoard that cannot be made",
      ["run", tiny, "--tensorboard", "/proc/x/y"],
      2,
      /expected --tensorboard to be where events can be written, got \/proc\/x\/y \(ENOENT/,
    ],
    [
      "a trace where a folder is",
      ["run", tiny, "--trace-file", "/etc"],
      2,
      /expected --trace-file to be where events can be written, got \/etc \(EISDIR/,
    ],
    [
      "a file of options that is not there",
      ["run", tiny, "--config", "no.toml"],
      2,
      /in no\.toml, got no such file/,
    ],
    ["no job", ["run"], 2, /missing required argument 'job'/],
    ["an unknown command", ["train"], 2, /expected a command of troupe, got train \(there are run, /],
    [
      "a number that is none",
      ["run", tiny, "--ranks", "two"],
      2,
      /expected ranks to be a whole number from 1 to 256, got two \(from --ranks\)/,
    ],
    [
      "a ZeRO level out of range",
      ["run", tiny, "--zero", "4"],
      2,
      /expected zero to be 0, 1, 2 or 3, or oss, sdp or fsdp, got 4/,
    ],
    [
      "an unknown placement",
      ["run", tiny, "--placement", "moon"],
      2,
      /expected placement to be thread or process, got moon/,
    ],
    [
      "an unknown precision",
      ["run", tiny, "--precision", "fp8"],
      2,
      /expected precision to be fp32 or bf16 or fp16 or amp-bf16 or amp-fp16, got fp8/,
    ],
    [
      "a setting without a value",
      ["run", tiny, "--set", "layers"],
      2,
      /expected --set KEY=VALUE, got "layers"/,
    ],
    [
      "a setting the job lacks",
      ["run", tiny, "--set", "layer=3"],
      2,
      /expected a setting of the job, got layer \(did you mean layers\?\)/,
    ],
    [
      "a setting of another type",
      ["run", tiny, "--set", "layers=many"],
      2,
      /expected layers to be a number.*, got "many"/,
    ],
    [
      "a module that is no job",
      ["run", fileURLToPath(new URL("../fixtures/run-tiny.ts", import.meta.url))],
      2,
      /default export is defineJob/,
    ],
    [
      "a batch that the ranks cannot share",
      ["run", tiny, "--ranks", "3", ...data],
      2,
      /multiples of 3 data-parallel ranks × 1 micro-batches = 3, got 4/,
    ],
    [
      "heads that do not divide the width",
      ["run", tiny, ...data, "--set", "heads=3"],
      1,
      /n_embd to be a multiple of n_head = 3, got 32/,
    ],
    [
      "a vocabulary larger than the model's",
      ["run", tiny, ...data, "--set", "vocab=100"],
      1,
      /vocabulary.*100 tokens, got 256/,
    ],
    [
      "a data file that is not there",
      ["run", tiny, "--set", "data=/nowhere/text.txt"],
      2,
      /expected text at "\/nowhere\/text.txt", got no such file/,
    ],
    [
      "a checkpoint that is not there",
      ["run", tiny, ...data, "--resume", "/nowhere"],
      2,
      /expected a checkpoint in \/nowhere, got none/,
    ],
  ];

  it("names the folder that was meant where one of a run is misspelled, or holds runs and is none", async () => {
    expect((await train("--checkpoint", workspace.path("runs/named"))).code).toBe(0);
    const resume = async (folder: string) =>
      (await run(["run", tiny, ...data, "--resume", folder], workspace.folder)).err;
    expect(await resume("runs/nmaed")).toContain(
      "a checkpoint in runs/nmaed, got none (did you mean runs/named?)",
    );
    expect(await resume("./runz/named")).toContain("(did you mean ./runs/named?)");
    const listed = await run(["checkpoint", "list", "runs"], workspace.folder);
    expect(listed).toMatchObject({ code: 2, out: "" });
    expect(listed.err).toMatch(/a checkpoint in runs, got none \(did you mean runs\/named( or .*)?\?\)/);
  });

  it("tells its options by subject", async () => {
    const { code, out } = await run(["run", "--help"], workspace.folder);
    expect(code).toBe(0);
    const headings = out.split("\n").filter((line) => /^[A-Z][\w ]*:$/.test(line));
    expect(headings).toEqual([
      "Arguments:",
      "Options:",
      "Layout:",
      "Training:",
      "Precision:",
      "Memory and speed:",
      "Offload:",
      "Checkpoints:",
      "Supervision:",
      "Anomalies:",
      "Telemetry:",
      "Dashboard:",
      "Output:",
      "Experiments:",
    ]);
  });

  it("prints its configuration with what the job, a file, a variable and a flag say, and trains nothing", async () => {
    const config = workspace.path("run.toml");
    writeFileSync(config, `ranks = 2\n[set]\nlayers = 3\n`);
    const { code, out } = await train("--config", config, "--zero", "1", "--print-config");
    expect(code).toBe(0);
    expect(out).toMatch(/^ranks = 2 +# file .*run\.toml$/m);
    expect(out).toMatch(/^zero = 1 +# flag --zero$/m);
    expect(out).toMatch(/^steps = 4 +# flag --steps$/m);
    expect(out).toMatch(/^accumulation = 1 +# job$/m);
    expect(out).toMatch(/^dir = "runs\/tiny-\d" +# default$/m);
    expect(out).toMatch(/^layers = 3 +# file .*run\.toml$/m);
    expect(out).toMatch(/^heads = 2 +# job$/m);
    const wrong = await train("--config", config, "--checkpoint-evry", "2");
    expect(wrong.err).toMatch(/got --checkpoint-evry \(did you mean --checkpoint-every\?\)/);
  });

  it("proposes layouts that work for the job in place of one that cannot", async () => {
    const refused = await train("--ranks", "3", "--tp", "2");
    expect(refused.err).toMatch(
      /expected ranks in multiples of tp 2 × pp 1 = 2, got 3 \(nearest that work: /,
    );
    expect(refused.code).toBe(2);
    const [, first = ""] = /nearest that work: ([^;)]+)/.exec(refused.err) ?? [];
    const changes = Object.fromEntries(first.split(", ").map((change) => change.split(" ")));
    const { ranks = "3", tp = "2", ...others } = changes;
    expect(others).toEqual({});
    expect((await train("--ranks", ranks, "--tp", tp, "--steps", "1", "--set", "vocab=256")).code).toBe(0);
  });

  it("says of a training that is no plan what a plan is", async () => {
    const job = workspace.path("null.ts");
    writeFileSync(
      job,
      `import job from ${JSON.stringify(tiny)};\nexport default { ...job, training: () => null };\n`,
    );
    const { code, err } = await run(["run", job, ...data], workspace.folder);
    expect(err).toMatch(
      /expected the job's training to be a plan such as \{ steps: 100, batchSize: 16 \}, got null/,
    );
    expect(code).toBe(2);
  });

  it.each(refusals)(
    "refuses %s with one clear error and no thread started",
    async (_what, args, code, message) => {
      const finished = await run(args, workspace.folder);
      expect(finished.err).toMatch(message);
      expect(finished.code).toBe(code);
      // As Node writes a stack.
      expect(finished.err).not.toMatch(/^ {4}at /m);
    },
  );

  it("refuses an empty data file", async () => {
    writeFileSync(workspace.path("empty.txt"), "");
    const { code, err } = await run(
      ["run", tiny, "--set", `data=${workspace.path("empty.txt")}`],
      workspace.folder,
    );
    expect(code).toBe(2);
    expect(err).toMatch(/expected text in .*empty\.txt, got 0 bytes/);
  });

  it("trains on when the disk is full, says so, leaves nothing half-written, and exits with 1", async () => {
    const args = [
      "run",
      tiny,
      "--steps",
      "6",
      ...data,
      "--checkpoint",
      workspace.path("full"),
      "--ranks",
      "2",
    ];
    // A file may not grow beyond 64 KiB: what a full disk does to a save.
    const script = `trap '' XFSZ; ulimit -f 64; exec "$0" "$@"`;
    const finished = await execute(
      "bash",
      ["-c", script, process.execPath, troupe, ...args],
      workspace.folder,
    );
    expect(finished.err).toMatch(/6\/6/);
    expect(finished.err).toMatch(/expected to save .*step-000006, got ".*" \(free space/);
    expect(finished.code).toBe(1);
    expect(readdirSync(workspace.path("full"))).toEqual(["events.jsonl", "run.json"]);
  });

  it.each(["2>&1 | head -n 1", "2> /dev/full", "--json > /dev/full"])(
    "a run trains to its end if its output cannot be written: %s",
    async (whither) => {
      const dir = workspace.path(`nowhere-${whither.replaceAll(/\W/g, "")}`);
      const args = ["run", tiny, "--steps", "40", ...data, "--checkpoint", dir];
      await execute(
        "bash",
        ["-c", `"$0" "$@" ${whither}`, process.execPath, troupe, ...args],
        workspace.folder,
      );
      expect(readdirSync(dir)).toContain("step-000040");
    },
  );

  it("ends at a signal with its state saved, an exit code of its own and a word on how to go on", async () => {
    const dir = workspace.path("interrupted");
    const args = ["run", tiny, "--steps", "100000", ...data, "--checkpoint", dir, "--json"];
    const child = spawn(process.execPath, [troupe, ...args], { cwd: workspace.folder });
    let err = "";
    child.stderr.on("data", (text) => {
      err += String(text);
    });
    for await (const line of createInterface({ input: child.stdout })) {
      const event = JSON.parse(line) as { kind: string; step?: number };
      if (event.kind === "step.finished" && event.step === 3) child.kill("SIGTERM");
    }
    expect(child.exitCode ?? (await once(child, "exit"))[0]).toBe(75);
    const [, step = ""] = /got SIGTERM after step (\d+), whose state is saved/.exec(err) ?? [];
    expect(err).toContain(`--resume ${dir}`);
    expect(readdirSync(dir)).toEqual(["events.jsonl", "latest", "run.json", `step-${step.padStart(6, "0")}`]);
  });

  it("ends at once at a second signal, with its code, and leaves the folder free and intact for the next run", async () => {
    const dir = workspace.path("twice");
    // A rank that hangs cannot end its step: the first signal would wait for it.
    const stuck = ["--set", "fault=hang", "--set", "faultRank=0", "--set", "faultAt=6", "--stall", "600000"];
    const args = ["run", tiny, "--steps", "100", ...data, "--checkpoint", dir, "--checkpoint-every", "2"];
    const child = spawn(process.execPath, [troupe, ...args, ...stuck, "--json"], { cwd: workspace.folder });
    for await (const line of createInterface({ input: child.stdout })) {
      const event = JSON.parse(line) as { kind: string; step?: number };
      if (event.kind === "checkpoint.saved" && event.step === 6) child.kill("SIGTERM");
      if (event.kind === "run.interrupted") child.kill("SIGINT");
    }
    expect(child.exitCode ?? (await once(child, "exit"))[0]).toBe(130);
    const next = ["run", tiny, "--steps", "8", ...data, "--resume", dir, "--set", "fault="];
    expect((await run(next, workspace.folder)).code).toBe(0);
    expect(readdirSync(dir)).toContain("step-000008");
  });

  it("refuses a checkpoint folder that cannot be made, before training", async () => {
    const { code, err } = await train("--checkpoint", join(workspace.text, "runs"));
    expect(code).toBe(2);
    expect(err).toMatch(/expected --checkpoint to be a folder that can be written, got .*text\.txt\/runs/);
    expect(err).not.toMatch(/1\/4/);
  });

  it("exits with 1 when training fails, and keeps what was saved", async () => {
    const dir = workspace.path("saved");
    mkdirSync(dir);
    expect((await train("--checkpoint", dir)).code).toBe(0);
    const fault = ["--set", "fault=nan", "--set", "faultAt=1", "--ranks", "2"];
    const { code, err } = await train("--checkpoint", workspace.path("other"), ...fault);
    expect(code).toBe(1);
    expect(err).toMatch(/expected a finite loss on rank 1, got NaN/);
    expect(existsSync(workspace.path("saved/step-000004/manifest.json"))).toBe(true);
  });
});
