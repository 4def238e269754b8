import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SafetensorsFile } from "../../src/entries/checkpoint.ts";
import { Runtime, type RuntimeOptions } from "../../src/entries/index.ts";
import {
  bareNames,
  declareGolden,
  type Golden,
  type GoldenFolder,
  GRADIENT_FLOOR,
  goldenFolders,
  openGolden,
  relativeError,
} from "./golden.ts";
import { joinFolders, keyOf } from "./together.ts";

const job = new URL("./job.ts", import.meta.url);
const folders = goldenFolders().filter(({ lacks }) => lacks === undefined);
const directory = mkdtempSync(join(tmpdir(), "troupe-golden-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

interface Layout {
  readonly title: string;
  readonly options: RuntimeOptions;
  readonly replicas: number;
}

/** One run of each proves it for all models at once: see `Together`. */
const layouts: readonly Layout[] = [
  { title: "on two replicas at ZeRO 0", options: { ranks: 2, zero: 0 }, replicas: 2 },
  { title: "on two replicas at ZeRO 3", options: { ranks: 2, zero: 3 }, replicas: 2 },
  { title: "with blocks as programs", options: { ranks: 2, zero: 3, graph: "exact" }, replicas: 2 },
  { title: "on two ranks that split its layers", options: { ranks: 2, tp: 2 }, replicas: 1 },
  {
    title: "on two ranks that split its layers and share its positions",
    options: { ranks: 2, tp: 2, sequenceParallel: true, zero: 3, recompute: true },
    replicas: 1,
  },
  {
    title: "with blocks as programs that are split and share positions",
    options: { ranks: 2, tp: 2, sequenceParallel: true, zero: 3, recompute: true, graph: "exact" },
    replicas: 1,
  },
  { title: "recomputed", options: { ranks: 2, zero: 3, recompute: true }, replicas: 2 },
  {
    title: "in a process for each rank",
    options: { ranks: 2, zero: 3, placement: "process" },
    replicas: 2,
  },
];

const golden = new Map<string, Golden>();
beforeAll(async () => {
  for (const { name, path } of folders) golden.set(name, await openGolden(path));
});
afterAll(async () => {
  for (const { state } of golden.values()) for (const tensor of state.values()) tensor.dispose();
});
const recipeOf = ({ name }: GoldenFolder) => (golden.get(name) as Golden).recipe;

/** The figures that a run reported of each of its models. */
interface GoldenRun {
  /** By model, of every step. */
  readonly losses: readonly (readonly number[])[];
  /** By model, of its outputs. */
  readonly errors: readonly number[];
}

const joined = new Map<string, Promise<string>>();

/** Where the weights of several models lie in one folder, which is written once. */
function weightsOf(models: readonly GoldenFolder[]): Promise<string> {
  const key = models.map(({ name }) => name).join(" ");
  const path = join(directory, `weights-${joined.size}`);
  const written = joined.get(key) ?? joinFolders(path, models).then(() => path);
  joined.set(key, written);
  return written;
}

async function run(
  models: readonly GoldenFolder[],
  { options, replicas }: Layout,
  config: Readonly<Record<string, unknown>>,
): Promise<GoldenRun> {
  const weights = await weightsOf(models);
  const losses = models.map((): number[] => []);
  let errors: readonly number[] = [];
  await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, ...options });
  runtime.on("step.finished", (event) => {
    for (const [index, each] of losses.entries()) each.push(event.losses?.[keyOf(index)] ?? Number.NaN);
  });
  runtime.on("evaluation.finished", ({ metrics }) => {
    errors = models.map((_, index) => metrics?.[keyOf(index)] ?? Number.NaN);
  });
  const chosen = models.map(({ name, path, base, adapter, task }) => ({ name, path, base, adapter, task }));
  await runtime.run(job, { models: JSON.stringify(chosen), folder: weights, replicas, ...config });
  return { losses, errors };
}

/** A step at rate 0 leaves the weights: behind it the outputs are judged, and its moments tell every gradient. */
async function firstStep(models: readonly GoldenFolder[], layout: Layout, dir: string): Promise<GoldenRun> {
  const checkpoint = { dir, everySteps: 1 };
  const saving = { ...layout, options: { ...layout.options, checkpoint } };
  return run(models, saving, { steps: 1, lr: 0, evaluate: 1 });
}

async function checkGradients(folder: GoldenFolder, index: number, dir: string): Promise<void> {
  await using moments = await SafetensorsFile.open(join(dir, "step-000001", "optimizer.safetensors"));
  const bare = bareNames(declareGolden(folder));
  const given = [...(golden.get(folder.name) as Golden).state].filter(([name]) => name.startsWith("grad."));
  const gradients = new Map(
    given.map(([name, gradient]) => [
      bare(name.slice("grad.".length)),
      gradient.toTypedArray() as Float32Array,
    ]),
  );
  let largest = 0;
  for (const values of gradients.values())
    for (const value of values) largest = Math.max(largest, Math.abs(value));
  const entries = [...moments.tensors.keys()].filter((name) => name.startsWith(`exp_avg.${keyOf(index)}.`));
  const byName = new Map(
    entries.map((entry) => [bare(entry.slice(`exp_avg.${keyOf(index)}.`.length)), entry]),
  );
  for (const [name, expected] of gradients) {
    const bytes = await moments.read(byName.get(name) ?? name);
    // After one step AdamW's first moment is the gradient times 1 - beta1.
    const got = new Float32Array(bytes.slice().buffer).map((value) => value / 0.1);
    expect(relativeError(got, expected, GRADIENT_FLOOR * largest), name).toBeLessThan(1e-5);
  }
}

/** The ten losses of each model, by the title of the layout. */
const tens = new Map<string, GoldenRun>();

// Each run starts once, and its first test waits for it.
for (const layout of folders.length === 0 ? [] : layouts) {
  describe(`${layout.title}, a run equals transformers`, () => {
    const dir = join(directory, `moments-${layouts.indexOf(layout)}`);
    let first: GoldenRun;
    let ten: GoldenRun;
    beforeAll(async () => {
      first = await firstStep(folders, layout, dir);
    });
    beforeAll(async () => {
      ten = await run(folders, layout, { steps: 10 });
      tens.set(layout.title, ten);
    });

    const { graph, ...singly } = layout.options;
    if (graph === "exact")
      test("to the bit as operator by operator", () => {
        const same = layouts.find(({ options }) => isDeepStrictEqual(options, singly));
        expect(ten.losses).toEqual(tens.get(same?.title ?? "")?.losses);
      });

    for (const [index, folder] of folders.entries()) {
      test(`golden/${folder.name}: outputs, loss and gradients within 1e-5, ten losses within 1e-4`, async () => {
        const { losses } = recipeOf(folder);
        expect(first.errors[index], "outputs").toBeLessThan(1e-5);
        expect(relativeError(first.losses[index] ?? [], losses.slice(0, 1)), "loss").toBeLessThan(1e-5);
        await checkGradients(folder, index, dir);
        for (const [step, expected] of losses.entries()) {
          const error = relativeError([ten.losses[index]?.[step] ?? Number.NaN], [expected], 1);
          expect(error, `step ${step + 1}`).toBeLessThan(1e-4);
        }
      });
    }
  });
}

// The norm that clips is that of all gradients, and the stages of a pipeline follow each other: each model by itself.
const stages: Layout = { title: "on two stages", options: { ranks: 2, pp: 2 }, replicas: 1 };
for (const folder of folders) {
  test(`golden/${folder.name}: outputs, loss, gradients and ten clipped losses on two stages of a pipeline`, async () => {
    const dir = join(directory, `stages-${folder.name}`);
    const first = await firstStep([folder], stages, dir);
    expect(first.errors[0], "outputs").toBeLessThan(1e-5);
    expect(relativeError(first.losses[0] ?? [], recipeOf(folder).losses.slice(0, 1)), "loss").toBeLessThan(
      1e-5,
    );
    await checkGradients(folder, 0, dir);
    const { losses } = await run([folder], stages, { steps: 10, clipNorm: 1 });
    for (const [step, expected] of recipeOf(folder).losses_clip_1.entries()) {
      const error = relativeError([losses[0]?.[step] ?? Number.NaN], [expected], 1);
      expect(error, `step ${step + 1}`).toBeLessThan(1e-4);
    }
  });
}
