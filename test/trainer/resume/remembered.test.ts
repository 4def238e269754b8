import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stepFolder } from "../../../src/entries/checkpoint.ts";
import type { RuntimeOptions } from "../../../src/entries/index.ts";
import type { EventOf } from "../../../src/job/events/index.ts";
import { encodeManifest, parseManifest } from "../../../src/library/checkpoint/format/manifest.ts";
import { lossesOf, type Outcome, runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const tuned = new URL("../../fixtures/jobs/tuned.ts", import.meta.url);
const workspace = new Workspace();
const dir = workspace.path("run");
/** The settings of the first run: the second must know them all. */
const settings = { layers: 2, width: 16, lr: 5e-3, beta2: 0.9 };
const steps = 6;
let straight: readonly number[] = [];

beforeAll(async () => {
  const checkpoint = { dir, everySteps: 2 };
  straight = await lossesOf(workspace, { steps, checkpoint }, settings, tuned);
});
afterAll(() => workspace[Symbol.dispose]());

const goOn = (config: Readonly<Record<string, unknown>>, options: RuntimeOptions = {}) =>
  runTiny(workspace, { resume: join(dir, stepFolder(2)), ...options }, config, tuned);

function resumedIn({ events }: Outcome): EventOf<"run.resumed"> | undefined {
  return events.find((event) => event.kind === "run.resumed");
}

describe("a run that goes on", () => {
  it("a resumed run has the settings and steps of its checkpoint by default, and the bits of the straight run", async () => {
    const outcome = await goOn({});
    expect(outcome.error).toBeUndefined();
    expect(outcome.losses.slice(2)).toEqual(straight.slice(2));
    expect(outcome.losses).toHaveLength(steps);
    expect(resumedIn(outcome)).toMatchObject({ path: join(dir, stepFolder(2)), step: 2, changes: [] });
  });

  it.each([
    [
      { layers: 1 },
      /which has transformer\.h\.1\..*, got one without it \(layers was 2, is 1; leave that setting out/,
    ],
    [
      { layers: 3 },
      /which has no transformer\.h\.2\..*, got one with .* of shape .* \(layers was 2, is 3; leave/,
    ],
    [
      { width: 32, layers: 1 },
      /which has transformer\.wte\.weight of shape \[256,16\], got one with .* \[256,32\] \(layers was 2, is 1; width was 16, is 32;/,
    ],
  ])(
    "a resumed run refuses another model, and names the settings that differ: %j",
    async (config, message) => {
      const { error, events } = await goOn(config);
      expect(error).toMatchObject({ code: "RESUME_MISMATCH" });
      expect(error?.message).toMatch(message);
      expect(events.map(({ kind }) => kind)).not.toContain("run.started");
    },
  );

  it.each([
    [{ lr: 1e-3 }, "optimizer.lr was 0.005, is 0.001", "optimizer.lr"],
    [{ beta2: 0.99 }, "optimizer.betas was [0.9,0.9], is [0.9,0.99]", "optimizer.betas"],
    [
      { weightDecay: 0 },
      "optimizer.weightDecay was 0.1 (of transformer.wte.weight and 9 more), is 0",
      "optimizer.weightDecay",
    ],
    [
      { end: 80, warmup: 3 },
      "schedule.warmup was 2, is 3; schedule.end was 60, is 80",
      "schedule.warmup,schedule.end",
    ],
    [{ batch: 8 }, "batchSize was 4, is 8", "batchSize"],
    [{ clipNorm: 0.5 }, "clip.max was 1, is 0.5", "clip.max"],
    [{ context: 8 }, "data.length was 16, is 8", "data.length"],
  ])(
    "a resumed run refuses another training unless options name the change: %j",
    async (config, difference, words) => {
      const { error } = await goOn(config);
      expect(error?.message).toBe(
        `[resume] expected to train on as the checkpoint's run did, got another run: ${difference} (go back to that, or let it change: --change ${words})`,
      );
    },
  );

  it.each([
    ["optimizer.lrr", "did you mean optimizer.lr?"],
    ["clip.maxx", "did you mean clip.max?"],
    ["data.lenght", "did you mean data.length?"],
  ])("is refused a name to change that nothing has: %s", async (word, hint) => {
    const { error } = await goOn({}, { change: [word] });
    expect(error?.message).toBe(
      `[options] expected change to name what this run is made of, got ${word} (${hint})`,
    );
  });

  it("a resumed run uses the changes that options name, and reports them", async () => {
    const outcome = await goOn({ lr: 1e-3, batch: 8 }, { change: ["optimizer", "batchSize"] });
    expect(outcome.error).toBeUndefined();
    expect(resumedIn(outcome)?.changes).toEqual([
      { of: "settings", name: "batch", was: "4", is: "8" },
      { of: "settings", name: "lr", was: "0.005", is: "0.001" },
      { of: "training", name: "batchSize", was: "4", is: "8" },
      { of: "training", name: "optimizer.lr", was: "0.005", is: "0.001" },
    ]);
    const first = outcome.events.find((event) => event.kind === "step.finished");
    expect(first?.learningRate).toBeLessThan(1e-3);
    expect(first).toMatchObject({ step: 3, numSamples: 8 });
  });

  it("a resumed run reports other steps, another precision and another text of its job or of its imports, if options name them", async () => {
    const job = workspace.path("job.ts");
    const write = (note: string) => {
      writeFileSync(job, `export { default } from "./parts/all.ts"; // ${note}\n`);
      mkdirSync(workspace.path("parts"), { recursive: true });
      for (const [file, from] of [
        ["all.ts", "./same.ts"],
        ["same.ts", tuned.href],
      ] as const)
        writeFileSync(
          workspace.path(`parts/${file}`),
          `export { default } from ${JSON.stringify(from)}; // ${file === "all.ts" ? note : ""}\n`,
        );
    };
    write("first");
    const url = pathToFileURL(job);
    const checkpoint = { dir: workspace.path("edited"), everySteps: 1 };
    expect((await runTiny(workspace, { steps: 1, checkpoint }, {}, url)).error).toBeUndefined();
    write("second");
    const options = { steps: 2, precision: "amp-bf16", resume: checkpoint.dir } as const;
    const outcome = await runTiny(workspace, options, {}, url);
    expect(outcome.error).toBeUndefined();
    expect(resumedIn(outcome)?.changes).toEqual([
      { of: "run", name: "steps", was: "1", is: "2" },
      { of: "run", name: "precision", was: "fp32", is: "amp-bf16" },
      {
        of: "run",
        name: "job",
        was: expect.stringMatching(/job\.ts \(sha256 [0-9a-f]{12}\)$/),
        is: expect.stringMatching(/job\.ts \(sha256 [0-9a-f]{12}\)$/),
      },
      {
        of: "run",
        name: "job.parts/all.ts",
        was: expect.stringMatching(/^parts\/all\.ts \(sha256 [0-9a-f]{12}\)$/),
        is: expect.stringMatching(/^parts\/all\.ts \(sha256 [0-9a-f]{12}\)$/),
      },
    ]);
  });
});

describe("the data of a run that goes on", () => {
  it("data is known by its content, not by its name: other data is refused unless options name the change", async () => {
    const copy = workspace.path("copy.txt");
    const other = workspace.path("other.txt");
    const text = readFileSync(workspace.text, "utf8");
    writeFileSync(copy, text);
    writeFileSync(other, text.replace("1 is 1", "1 is 2"));
    const same = await goOn({ data: copy });
    expect(same.error).toBeUndefined();
    expect(same.losses.slice(2)).toEqual(straight.slice(2));
    const { error } = await goOn({ data: other });
    expect(error?.message).toMatch(
      /data\.text was [0-9a-f]{64}, is [0-9a-f]{64} \(.* --change data\.text\)$/,
    );
    const changed = await goOn({ data: other, steps: 3 }, { change: ["data"] });
    expect(changed.error).toBeUndefined();
    expect(resumedIn(changed)?.changes.map(({ of, name }) => `${of} ${name}`)).toEqual([
      "settings data",
      "settings steps",
      "run steps",
      "data data.text",
    ]);
    // The job's present plan overrides an earlier option.
    expect(changed.losses).toHaveLength(3);
  });

  it("data may give its own edition late: no step waits for it", async () => {
    const checkpoint = { dir: workspace.path("editions"), everySteps: 40 };
    const first = await runTiny(workspace, { steps: 40, checkpoint }, { edition: "first" }, tuned);
    expect(first.error).toBeUndefined();
    const again = { steps: 41, resume: checkpoint.dir };
    const { error } = await runTiny(workspace, again, { edition: "second" }, tuned);
    expect(error?.message).toContain("data.edition was first, is second");
    expect((await runTiny(workspace, again, {}, tuned)).error).toBeUndefined();
  });
});

describe("a checkpoint of an older version", () => {
  it("an older checkpoint is resumed: settings that it lacks count as equal", async () => {
    const path = join(dir, stepFolder(4), "manifest.json");
    const { state, ...rest } = parseManifest(readFileSync(path), path);
    const { recipe, ...older } = state;
    expect(recipe).toMatchObject({ batchSize: 4, steps: { total: steps, planned: 50, asked: true } });
    writeFileSync(path, encodeManifest({ state: older, ...rest }));
    const resume = join(dir, stepFolder(4));
    const outcome = await goOn({ lr: 1e-3 }, { resume, steps: 5 });
    expect(outcome.error).toBeUndefined();
    expect(outcome.losses).toHaveLength(5);
    expect((await goOn({ batch: 8 }, { resume })).error?.message).toContain("batchSize was 4, is 8");
  });
});

describe("a run that has made the steps an option once said", () => {
  it("continues with the job's own plan, and reports that", async () => {
    const checkpoint = { dir: workspace.path("legs"), everySteps: 1 };
    const plan = { steps: 3 };
    expect((await runTiny(workspace, { steps: 1, checkpoint }, plan, tuned)).error).toBeUndefined();
    const outcome = await runTiny(workspace, { resume: checkpoint.dir }, {}, tuned);
    expect(outcome.losses).toHaveLength(3);
    expect(resumedIn(outcome)?.changes).toEqual([{ of: "run", name: "steps", was: "1", is: "3" }]);
  });
});
