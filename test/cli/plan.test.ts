import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it, vi } from "vitest";
import { main } from "../../src/tools/cli/main.ts";
import { Workspace } from "../fixtures/run-tiny.ts";

const file = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

interface Finished {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function plan(...args: string[]): Promise<Finished> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [file("bin/troupe.mjs"), "plan", ...args],
      (_error, out, err) => {
        resolve({ code: child.exitCode, out, err });
      },
    );
  });
}

/** Runs the command without a process of its own, until exit code 2. @returns what it said */
async function refusalOf(...args: string[]): Promise<string> {
  let said = "";
  const ear = vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    said += text;
    return true;
  });
  try {
    expect(await main(["plan", ...args])).toBe(2);
    return said;
  } finally {
    ear.mockRestore();
  }
}

describe("troupe plan", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());
  const gpt13b = [
    file("examples/plans/gpt-13b.json"),
    "--ranks",
    "32",
    "--cluster",
    "v100",
    "--batch",
    "256",
  ];

  it("prints memory by stage and kind, and the step's time, of the layout it is given", async () => {
    const { code, out } = await plan(
      ...gpt13b,
      "--zero",
      "1",
      "--tp",
      "8",
      "--pp",
      "4",
      "--accumulation",
      "32",
      "--precision",
      "bf16",
    );
    expect(code).toBe(0);
    expect(out).toContain("gpt-13b.json: 12.8B parameters on 32 ranks of v100, bf16");
    expect(out).toContain("tp 8 · pp 4 · dp 1, 1f1b, ZeRO 1, 256 samples in 32 micro-batches");
    expect(out).toMatch(/rank of stage +weights +parameters +master +optimizer +gradients +activations/);
    expect(out).toMatch(/^3 .* GB$/m);
    const [, seconds, samples, tokens] =
      /^step (\d\S*) s \(estimated\): computing .* %; (\S+) samples\/s, (\S+)k tokens\/s$/m.exec(out) ?? [];
    // Both as printed, with three digits.
    expect(Number(samples)).toBeCloseTo(256 / Number(seconds), 0);
    // As printed, with three digits.
    expect(Number(tokens)).toBeCloseTo((Number(samples) * 512) / 1000, 1);
  });

  it("runs the schedules of all ranks in virtual time with --simulate", async () => {
    const { code, out } = await plan(...gpt13b, "--zero", "3", "--recompute", "--simulate");
    expect(code).toBe(0);
    expect(out).toMatch(/step \d\S* s \(simulated, [\d.]+k events in order\): computing/);
    expect(out).toMatch(/hidden; [\d.]+ TFLOP\/s a rank/);
  });

  it("writes what a rank of each stage does when as a Chrome trace with --timeline", async () => {
    const file = workspace.path("timeline.json");
    const layout = ["--tp", "8", "--pp", "4", "--accumulation", "8"];
    expect((await plan(...gpt13b, ...layout, "--timeline", file)).code).toBe(0);
    const { traceEvents } = JSON.parse(readFileSync(file, "utf8")) as {
      traceEvents: { name: string; ph: string; pid: number; dur: number }[];
    };
    expect(new Set(traceEvents.map(({ pid }) => pid))).toEqual(new Set([0, 8, 16, 24]));
    const spans = traceEvents.filter(({ ph }) => ph === "X");
    expect(spans.some(({ name, dur }) => name === "backward 10" && dur > 0)).toBe(true);
    expect(spans.some(({ name }) => name === "update 1")).toBe(true);
  });

  it("suggests layouts that fit where none is given", async () => {
    const { code, out } = await plan(...gpt13b, "--memory", "16GB");
    expect(code).toBe(0);
    expect(out).toContain("layouts that fit 16.0 GB per rank");
    expect(out).toMatch(/^step +tokens\/s +peak/m);
    expect(out.split("\n").filter((line) => line.includes("tp ")).length).toBeGreaterThan(3);
  });

  it("plans a job by its own model, batch and settings, as JSON too", async () => {
    const job = [
      file("test/fixtures/jobs/tiny.ts"),
      "--set",
      `data=${workspace.text}`,
      "--set",
      `cache=${workspace.path("cache")}`,
    ];
    const layers = ["--set", "layers=3"];
    const { code, out } = await plan(...job, ...layers, "--ranks", "4", "--pp", "2", "--json");
    expect(code).toBe(0);
    const { layout, memory } = JSON.parse(out) as { layout: object; memory: { numParameters: number }[] };
    expect(layout).toMatchObject({ ranks: 4, pp: 2, batchSize: 4 });
    expect(memory).toHaveLength(2);
    expect(memory[0]?.numParameters).toBeGreaterThan(memory[1]?.numParameters ?? 0);
  });

  it("prints the run that it planned, to be copied: of the layout that was named, or of the best one", async () => {
    const job = file("examples/hello/job.ts");
    const named = await plan(job, "--ranks", "4", "--pp", "2", "--accumulation", "4", "--precision", "fp16");
    expect(named.out.trim().split("\n").at(-1)).toBe(
      `troupe run ${job} --ranks 4 --pp 2 --zero 3 --schedule 1f1b --accumulation 4 --precision fp16`,
    );
    const best = await plan(job, "--ranks", "2", "--set", "layers=4");
    expect(best.out.trim().split("\n").at(-1)).toMatch(
      /^troupe run \S+ --ranks 2 .*--accumulation \d+ --precision fp32 --set layers=4$/,
    );
  });

  it("counts what the kernels of the device that is named take", async () => {
    const job = [file("bench/gpt/job.ts"), "--ranks", "1", "--zero", "0", "--batch", "16", "--json"];
    const workspaceOn = async (device: string) => {
      const { out } = await plan(...job, "--device", device);
      return (JSON.parse(out) as { memory: [{ workspace: number }] }).memory[0].workspace;
    };
    // All 4,096 rows of bfloat16 logits at once, of full groups of classes, where the host has 64 MiB of them.
    const logitsBytes = 4_096 * 50_304 * 2;
    expect(await workspaceOn("cuda:1")).toBeGreaterThan(logitsBytes);
    expect(await workspaceOn("cpu")).toBeLessThan(logitsBytes);
  });

  it("plans the run that a file and the environment describe", async () => {
    const config = workspace.path("run.toml");
    writeFileSync(
      config,
      'ranks = 4\npp = 2\naccumulation = 4\n[checkpoint]\ndir = "runs/x"\n[set]\nlayers = 4\n',
    );
    const { out } = await plan(file("examples/hello/job.ts"), "--config", config);
    expect(out).toContain("tp 1 · pp 2 · dp 2, 1f1b, ZeRO 3, 16 samples in 4 micro-batches");
    expect(out).toContain("--set layers=4");
  });

  it("plans a model by a config.json of unknown origin, whatever other fields it has", async () => {
    const bare = workspace.path("config.json");
    const fields = JSON.parse(readFileSync(file("examples/plans/gpt-13b.json"), "utf8")) as object;
    writeFileSync(bare, JSON.stringify({ ...fields, n_ctx: 512, use_cache: true }));
    const { code, out, err } = await plan(bare, ...gpt13b.slice(1), "--tp", "8");
    expect([code, err]).toEqual([0, ""]);
    expect(out).toContain("12.8B parameters");
  });

  it("refuses an impossible layout with exit code 2 and the nearest that work", async () => {
    const { code, err } = await plan(...gpt13b, "--tp", "3");
    expect(code).toBe(2);
    expect(err).toContain("expected ranks in multiples of tp 3 × pp 1 = 3, got 32");
    expect(err).toContain("nearest that work");
  });

  it("says so when nothing fits, and what to do", async () => {
    const { code, err } = await plan(...gpt13b, "--memory", "1GB");
    expect(code).toBe(2);
    expect(err).toContain("expected a layout of 32 ranks that fits 1.00 GB");
  });

  it("plans a model with experts, also one whose busiest expert says how many tokens each takes", async () => {
    const settings = [`data=${workspace.text}`, `cache=${workspace.path("cache")}`];
    const job = [file("test/fixtures/jobs/experts.ts"), ...settings.flatMap((each) => ["--set", each])];
    for (const more of [[], ["--set", "dropTokens=false", "--set", "k=2"]]) {
      const { code, out } = await plan(...job, ...more, "--ranks", "2", "--tp", "1", "--json");
      expect(code).toBe(0);
      const { memory } = JSON.parse(out) as { memory: { numParameters: number }[] };
      // Two layers of four experts.
      expect(memory[0]?.numParameters).toBe(84_544);
    }
  });

  it("refuses machines and sizes it does not know", async () => {
    expect(await plan(...gpt13b.slice(0, 3), "--cluster", "abacus")).toMatchObject({ code: 2 });
    expect((await plan(...gpt13b, "--memory", "many")).err).toContain("expected a size such as 80GB");
  });

  it("refuses a batch of no samples, and what is about one layout where none is named", async () => {
    for (const batch of ["0", "-4", "2.5"]) {
      const refused = await refusalOf(file("examples/hello/job.ts"), "--ranks", "2", "--batch", batch);
      expect(refused).toContain(`expected --batch to be a whole number of at least 1, got ${batch}`);
    }
    for (const flags of [
      ["--simulate"],
      ["--timeline", workspace.path("none.json")],
      ["--accumulation", "4"],
      ["--schedule", "gpipe"],
      ["--chunks", "2"],
    ])
      expect(await refusalOf(...gpt13b, ...flags)).toContain(
        `expected --zero, --tp or --pp with ${flags[0]}, got none of them`,
      );
  });

  it("prints --sequence-parallel only in the command of a layout that splits layers", async () => {
    const job = [file("examples/hello/job.ts"), "--ranks", "2", "--sequence-parallel"];
    expect((await plan(...job, "--zero", "1")).out).not.toContain("--sequence-parallel");
    expect((await plan(...job, "--tp", "2")).out).toMatch(/ --tp 2 .* --sequence-parallel/);
  });

  it("refuses to offload parameters at a level that needs them throughout", async () => {
    const refused = await plan(...gpt13b, "--zero", "2", "--offload-parameters");
    expect(refused).toMatchObject({ code: 2 });
    expect(refused.err).toContain("expected --zero 3 with --offload-parameters, got 2");
  });
});
