import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, openSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { main } from "../../src/tools/cli/main.ts";
import { Workspace } from "../fixtures/run-tiny.ts";

const troupe = fileURLToPath(new URL("../../bin/troupe.mjs", import.meta.url));
const tiny = fileURLToPath(new URL("../fixtures/jobs/tiny.ts", import.meta.url));

describe("a place that nothing can be written to, or read from", () => {
  const workspace = new Workspace();
  const file = workspace.path("file");
  writeFileSync(file, "");
  expect(spawnSync("mkfifo", [workspace.path("pipe")]).status).toBe(0);
  afterAll(() => workspace[Symbol.dispose]());
  afterEach(() => {
    vi.restoreAllMocks();
  });

  const folder = workspace.path("checkpoints");
  const run = (...flags: string[]) => ["run", tiny, "--steps", "1", "--checkpoint", folder, ...flags];
  const longName = workspace.path("s".repeat(108));

  // Neither does the system call of a folder in /proc that nothing can be made in it: Node asks it again and again.
  it.each([
    ["checkpoints in /proc", ["run", tiny, "--checkpoint", "/proc/x"], /--checkpoint .* \/proc\/x .*ENOENT/],
    ["checkpoints in a file", ["run", tiny, "--checkpoint", file], /--checkpoint .*file .*ENOTDIR/],
    ["TensorBoard in /proc", run("--tensorboard", "/proc/x"), /--tensorboard .* \/proc\/x .*ENOENT/],
    ["a trace below a file", run("--trace-file", `${file}/trace.json`), /--trace-file .*(ENOTDIR|EEXIST)/],
    ["a trace in place of a folder", run("--trace-file", workspace.folder), /--trace-file .*EISDIR/],
    ["events in /proc", run("--events", "/proc/x/events.jsonl"), /--events .*ENOENT/],
    ["events in a pipe that nobody reads", run("--events", workspace.path("pipe")), /--events .*ENXIO/],
    [
      "a job that is not there, beside one of nearly that name",
      ["run", tiny.replace("tiny.ts", "tinny.ts")],
      /got no such file \(did you mean .*\/tiny\.ts\?\)/,
    ],
    [
      "a device that is not there",
      run("--device", "cuda:63"),
      /\[device cuda:63\] expected a device of this process, got \d+ of this kind/,
    ],
    ["a port below 0", run("--prometheus", "-1"), /whole number from 0 to 65535, got -1/],
    [
      "a token in /proc",
      run("--dashboard", "0", "--dashboard-token-file", "/proc/x/token"),
      /the token file .* to be this user's own.*ENOENT/,
    ],
    [
      "a socket whose path the system would cut",
      ["checkpoint", "serve", "--dir", workspace.path("served"), "--socket", longName],
      /a free place for a socket .* a path of \d+ bytes, where the system allows 107/,
    ],
  ])(
    "a path that cannot be written or read is refused with one sentence and exit code 2 before anything begins: %s",
    async (_what, args, message) => {
      let said = "";
      vi.spyOn(process.stderr, "write").mockImplementation((text) => {
        said += text;
        return true;
      });
      expect(await main(args)).toBe(2);
      expect(said).toMatch(/^troupe: .*\n$/);
      expect(said).toMatch(message);
      expect(existsSync(folder)).toBe(false);
    },
  );

  const model = workspace.path("small-model");
  mkdirSync(model);
  writeFileSync(`${model}/config.json`, "{}");
  const misspelt = workspace.path("smal-modle");
  const finetune = [
    "finetune",
    "--task",
    "causal_lm",
    "--epochs",
    "1",
    "--lr",
    "1",
    "--micro-batch-size",
    "1",
  ];
  it.each([
    ["generate", ["generate", misspelt, "--prompt", "x"]],
    ["dashboard", ["dashboard", misspelt]],
    ["plan", ["plan", `${misspelt}/config.json`, "--ranks", "2"]],
    ["convert", ["checkpoint", "convert", misspelt, workspace.path("out"), "--to", "hf"]],
    [
      "convert, for the model's config",
      [
        "checkpoint",
        "convert",
        model,
        workspace.path("out"),
        "--to",
        "hf",
        "--config",
        `${misspelt}/config.json`,
      ],
    ],
    ["list", ["checkpoint", "list", misspelt]],
    ["run, for options", run("--config", `${misspelt}/config.json`)],
    ["finetune", [...finetune, "--pretrained-model-name-or-path", misspelt, "--data-path", model]],
    ["finetune, for data", [...finetune, "--pretrained-model-name-or-path", model, "--data-path", misspelt]],
  ])("a missing path is reported with the nearest existing one, by %s", async (_command, args) => {
    let said = "";
    vi.spyOn(process.stderr, "write").mockImplementation((text) => {
      said += text;
      return true;
    });
    expect(await main(args)).toBe(2);
    expect(said).toMatch(/^troupe: \[.*\] expected .*\(did you mean .*small-model(\/config\.json)?\?\)\n$/);
  });

  it("a full standard output ends the command with exit code 2, because 1 means a damaged checkpoint", () => {
    const full = openSync("/dev/full", "w");
    const { status, stderr } = spawnSync(process.execPath, [troupe, ...run("--print-config")], {
      stdio: ["ignore", full, "pipe"],
      encoding: "utf8",
    });
    expect([status, stderr]).toEqual([
      2,
      "troupe: [troupe] expected standard output to take what was asked for, got ENOSPC: no space left on device, write (everything else is done)\n",
    ]);
  });
});
