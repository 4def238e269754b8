import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { liveRefs } from "../../../src/compute/tensor/index.ts";
import { listCheckpoints } from "../../../src/entries/checkpoint.ts";
import { type RuntimeOptions, type Tensor, type TroupeEvent, tensor } from "../../../src/entries/index.ts";
import type { GeneratedText } from "../../../src/library/models/index.ts";
import { readTensors } from "../../fixtures/read-tensors.ts";
import { lossesOf, runTiny, Workspace } from "../../fixtures/run-tiny.ts";
import { batchSize, called, dataset, lossesIn, rangeAt, SEED, withModel } from "./script.ts";

const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

const steps = 4;

const layouts: readonly (readonly [string, RuntimeOptions, Readonly<Record<string, unknown>>])[] = [
  ["one rank", { ranks: 1 }, { dropout: 0.1 }],
  ["2 replicas", { ranks: 2, zero: 0 }, { dropout: 0.1 }],
  ["2 ranks that split layers", { ranks: 2, tp: 2 }, {}],
  ["2 stages, accumulating", { ranks: 2, pp: 2 }, { accumulation: 2 }],
  ["2 ranks at level 3", { ranks: 2, zero: 3 }, { clipNorm: 0 }],
];

describe("a script that makes every step of a live model", () => {
  it.each(layouts)("gets the losses of a run, to the bit: %s", async (_, layout, config) => {
    const ofRun = await lossesOf(workspace, { ...layout, seed: SEED, steps }, config);
    const waiting = await withModel(workspace, layout, config, async (model) => {
      for (const [step, lossNats] of ofRun.entries()) {
        expect(await model.accumulate("loss", rangeAt(step))).toEqual({ lossNats });
        expect(await model.step()).toMatchObject({ step: step + 1, lossNats, skipped: false });
      }
    });
    expect(lossesIn(waiting)).toEqual(ofRun);
    const ahead = await withModel(workspace, layout, config, async (model) => {
      for (const step of ofRun.keys()) {
        void model.accumulate("loss", rangeAt(step));
        void model.step();
      }
    });
    expect(lossesIn(ahead)).toEqual(ofRun);
    expect(liveRefs()).toBe(0);
  });

  it("gets them for samples of its own, at a rate of its own", async () => {
    const config = { weigh: "alike" };
    const ofRun = await lossesOf(workspace, { ranks: 2, zero: 1, seed: SEED, steps }, config);
    const data = await dataset(workspace);
    const events = await withModel(workspace, { ranks: 2, zero: 1 }, config, async (model) => {
      for (const step of ofRun.keys()) {
        const { inputIds, targets } = data.batch("train", step * batchSize, batchSize) as {
          inputIds: Tensor;
          targets: Tensor;
        };
        const reported = model.accumulate("loss", { inputIds, targets });
        // The call has a copy.
        inputIds.dispose();
        targets.dispose();
        await reported;
        expect(await model.step(step === 3 ? { lr: 0.5 } : {})).toMatchObject(
          step === 3 ? { learningRate: 0.5 } : {},
        );
      }
    });
    expect(lossesIn(events)).toEqual(ofRun);
    expect(liveRefs()).toBe(0);
  });

  it("may accumulate in parts: one rank's parts are its micro-batches", async () => {
    const ofRun = await lossesOf(
      workspace,
      { ranks: 1, seed: SEED, steps: 2 },
      { batch: 8, accumulation: 2, dropout: 0.1 },
    );
    const events = await withModel(workspace, { ranks: 1 }, { batch: 4, dropout: 0.1 }, async (model) => {
      for (const step of ofRun.keys()) {
        await model.accumulate("loss", rangeAt(2 * step));
        void model.accumulate("loss", rangeAt(2 * step + 1));
        await model.step();
      }
    });
    expect(lossesIn(events)).toEqual(ofRun);
  });
});

describe("batches of a step that differ in size", () => {
  const sizes = [
    ["one rank", { ranks: 1 }],
    ["2 replicas at level 2", { ranks: 2, zero: 2 }],
    ["2 stages", { ranks: 2, pp: 2 }],
  ] as const;

  it.each(sizes)("count by their samples: %s", async (_, layout) => {
    const script = (parts: readonly (readonly [position: number, numSamples: number])[]) => {
      const reported: number[] = [];
      const ran = withModel(workspace, layout, { batch: 2 }, async (model) => {
        for (let step = 0; step < 3; step++) {
          const made = parts.map(([position, numSamples]) =>
            model.accumulate("loss", { split: "train", position: 12 * step + position, numSamples }),
          );
          const { lossNats } = await model.step({ lr: 0.1 });
          const losses = await Promise.all(made);
          const mean = losses.reduce((sum, each, at) => sum + each.lossNats * (parts[at]?.[1] ?? 0), 0) / 12;
          expect(lossNats).toBeCloseTo(mean, 6);
          reported.push(lossNats);
        }
      });
      return ran.then(() => reported);
    };
    const apart = await script([
      [0, 2],
      [2, 6],
      [8, 4],
    ]);
    const even = await script([
      [0, 4],
      [4, 4],
      [8, 4],
    ]);
    for (const [step, lossNats] of even.entries()) expect(apart[step]).toBeCloseTo(lossNats, 5);
  });
});

describe("a program of a job", () => {
  it.each(layouts)("gives rows in the order of the samples: %s", async (_, layout, config) => {
    const data = await dataset(workspace);
    const { inputIds, targets } = data.batch("train", 0, 6) as { inputIds: Tensor; targets: Tensor };
    await withModel(workspace, layout, { ...config, dropout: 0.1 }, async (model) => {
      const before = (await model.call("logProbs", { inputIds, targets })).rows.logProbs;
      expect(before.shape).toEqual([6, 16]);
      const ofRange = await model.call("logProbs", { split: "train", position: 2, numSamples: 3 });
      expect(ofRange.rows.logProbs.allclose(before.narrow(0, 2, 3), 1e-5, 1e-6)).toBe(true);
      // Within a step, the parameters are those before it.
      const batch = { inputIds: inputIds.narrow(0, 0, 4), targets: targets.narrow(0, 0, 4) };
      const advantages = tensor([1, -1, 0.5, 2]);
      void model.accumulate("policy", { ...batch, advantages }, { factor: 1 });
      const within = await model.call("logProbs", { inputIds, targets });
      expect(within.rows.logProbs.equal(before)).toBe(true);
      await model.step({ lr: 1e-2 });
      const after = await model.call("logProbs", { inputIds, targets });
      const gain = after.rows.logProbs.sub(before).mean(-1).narrow(0, 0, 4).mul(advantages).sum().item();
      expect(gain).toBeGreaterThan(0);
    });
    expect(liveRefs()).toBe(0);
  });
});

describe("a live model", () => {
  it("is evaluated as a run is, and saves the state at the call, from which runs and models go on", async () => {
    const dir = workspace.path("saved");
    const layout = { ranks: 2, zero: 2 } as const;
    const config = { evaluateEvery: steps };
    const ofRun = await runTiny(workspace, { ...layout, seed: SEED, steps }, config);
    const isEvaluation = ({ kind }: TroupeEvent) => kind === "evaluation.finished";
    const events = await withModel(workspace, { ...layout, checkpoint: { dir } }, config, async (model) => {
      void model.accumulate("loss", rangeAt(0));
      void model.step();
      void model.accumulate("loss", rangeAt(1));
      void model.step();
      const saved = model.save({ as: "half" });
      for (const step of [2, 3]) {
        void model.accumulate("loss", rangeAt(step));
        void model.step();
      }
      const { validation } = await model.evaluate();
      expect(ofRun.events.find(isEvaluation)).toMatchObject({ lossNats: validation?.lossNats });
      expect(await saved).toMatchObject({ step: 2 });
    });
    expect(lossesIn(events)).toEqual(ofRun.losses);
    expect((await listCheckpoints(dir)).map(({ step, named }) => [step, named])).toEqual([
      [4, []],
      [2, ["half"]],
    ]);
    const resume = `${dir}/half`;
    const resumed = await runTiny(workspace, { ...layout, steps, resume }, config, called);
    expect(resumed.losses.slice(2)).toEqual(ofRun.losses.slice(2));
    const opened = await withModel(workspace, { ...layout, resume }, config, async (model) => {
      for (const step of [2, 3]) {
        void model.accumulate("loss", rangeAt(step));
        expect(await model.step()).toMatchObject({ step: step + 1 });
      }
    });
    expect(lossesIn(opened).slice(2)).toEqual(ofRun.losses.slice(2));
  });

  it("is evaluated though its job never is, where the data has a split for it", async () => {
    const ofRun = await runTiny(workspace, { ranks: 2, seed: SEED, steps: 1 }, { evaluateEvery: 1 }, called);
    await withModel(workspace, { ranks: 2 }, { evaluateEvery: 0 }, async (model) => {
      void model.accumulate("loss", rangeAt(0));
      void model.step();
      const { validation } = await model.evaluate();
      const found = ofRun.events.find(({ kind }) => kind === "evaluation.finished");
      expect(found).toMatchObject({ lossNats: validation?.lossNats });
    });
  });

  const prompts = [[49, 32], [50, 32, 116], [51], [52, 57, 32, 105, 115], [53, 32]];
  // Texts end at different passes, and one prompt leaves a replica without any.
  const options = { maxNewTokens: 8, topK: 20, seed: 3, samples: 2, stopTokens: [32, 101] };
  const write = async (layout: RuntimeOptions, config: Readonly<Record<string, unknown>>) => {
    const texts: GeneratedText[] = [];
    await withModel(workspace, layout, config, async (model) => {
      void model.accumulate("loss", rangeAt(0));
      void model.step();
      const [many, one] = [model.generate(prompts, options), model.generate(["To be"], options)];
      texts.push(...(await many), ...(await one));
    });
    return texts;
  };
  const ofOne = new Map<string, Promise<readonly GeneratedText[]>>();
  const writeOnOne = (config: Readonly<Record<string, unknown>>) => {
    const key = JSON.stringify(config);
    const texts = ofOne.get(key) ?? write({ ranks: 1 }, config);
    ofOne.set(key, texts);
    return texts;
  };

  it.each(layouts)("writes the texts of one rank: %s", async (_, layout, given) => {
    // Dropout draws by micro-batch, and those of two replicas are not those of one.
    const config = { ...given, dropout: 0 };
    const texts = [await write(layout, config), await writeOnOne(config)];
    expect(texts[0]).toHaveLength(12);
    const [own, ofOneRank] = texts.map((rows) => rows.map(({ tokens, text }) => ({ tokens, text })));
    expect(own).toEqual(ofOneRank);
    expect(own?.[0]).not.toEqual(own?.[1]);
    expect(new Set(own?.map(({ tokens }) => tokens.length)).size).toBeGreaterThan(1);
    expect(own?.every(({ text }) => text !== undefined)).toBe(true);
    const logProbs = texts.map((rows) => rows.flatMap(({ logProbs: each }) => each));
    for (const [index, logProb] of (logProbs[0] ?? []).entries())
      expect(logProb).toBeCloseTo(logProbs[1]?.[index] ?? 0, 4);
  });

  it.each(layouts)("gives its parameters, complete, at the call: %s", async (_, layout, config) => {
    const dir = workspace.path(`parameters of ${layout.ranks} ${layout.tp} ${layout.pp} ${layout.zero}`);
    const checkpoint = { dir, inMemoryEverySteps: 2 };
    await withModel(workspace, { ...layout, checkpoint }, config, async (model) => {
      const first = await model.parameters();
      void model.accumulate("loss", rangeAt(0));
      void model.step();
      const read = model.parameters("*.c_*");
      void model.accumulate("loss", rangeAt(1));
      void model.step();
      const { path } = await model.save();
      const last = await model.parameters();
      const [ofRead, saved] = [await read, await readTensors(join(path, "model.safetensors"))];
      expect(Object.keys(ofRead)).toEqual(Object.keys(first).filter((name) => /\.c_/.test(name)));
      for (const [name, tensor] of Object.entries(ofRead)) {
        expect(tensor.equal(first[name] as Tensor)).toBe(false);
        expect(tensor.equal(last[name] as Tensor)).toBe(false);
      }
      for (const [name, tensor] of Object.entries(last))
        expect(tensor.toTypedArray()).toEqual(saved.get(name));
    });
    expect(liveRefs()).toBe(0);
  });

  it("drops what was accumulated for a step that its script does not make", async () => {
    const events = await withModel(workspace, { ranks: 2, zero: 3 }, {}, async (model) => {
      await model.accumulate("loss", rangeAt(0));
      await model.step();
      await model.accumulate("loss", rangeAt(1));
    });
    expect(lossesIn(events)).toHaveLength(1);
    expect(events).toContainEqual(expect.objectContaining({ kind: "run.finished", steps: 1 }));
    expect(liveRefs()).toBe(0);
  });
});
