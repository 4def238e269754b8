import { readFileSync } from "node:fs";
import { afterAll, expect, it } from "vitest";
import { liveRefs } from "../../../src/compute/tensor/index.ts";
import { ModelServer, type Tensor } from "../../../src/entries/index.ts";
import type { Samples } from "../../fixtures/jobs/called.ts";
import { lossesOf, Workspace } from "../../fixtures/run-tiny.ts";
import { batchSize, dataset, lossesIn, type Policy, rangeAt, SEED, withModel } from "./script.ts";

const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

const steps = 3;
const tokenFile = workspace.path("token");

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Serves a model at a port while `client` asks it by HTTP. */
async function whileServed(
  model: Policy,
  runtime: Parameters<typeof ModelServer.listen>[1],
  client: (
    ask: (path: string, fields?: object) => Promise<Answer>,
    address: string,
    end: (path: string) => Promise<Response>,
  ) => Promise<void>,
): Promise<void> {
  await using server = await ModelServer.listen(model, runtime, { port: 0, tokenFile });
  const token = readFileSync(tokenFile, "utf8").trim();
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  await client(
    async (path, fields = {}) => {
      const body = JSON.stringify(fields);
      const response = await fetch(`${server.address}/${path}`, { method: "POST", headers, body });
      return { status: response.status, body: (await response.json()) as Answer["body"] };
    },
    server.address,
    (path) => fetch(`${server.address}/${path}`, { method: "DELETE", headers }),
  );
}

it("a client by HTTP trains to the losses of a run, and reads the rows and texts that the script reads", async () => {
  const data = await dataset(workspace);
  const samples = data.batch("train", 40, batchSize) as Samples;
  const rowsOf = (tensor: Tensor) => {
    const all = Array.from(tensor.toTypedArray(), Number);
    const width = tensor.shape[1] as number;
    return Array.from({ length: batchSize }, (_, row) => all.slice(row * width, (row + 1) * width));
  };
  const batch = { inputIds: rowsOf(samples.inputIds), targets: rowsOf(samples.targets) };
  const ofRun = await lossesOf(workspace, { ranks: 2, zero: 3, seed: SEED, steps });
  const options = { maxNewTokens: 4, seed: 3 };
  const events = await withModel(workspace, { ranks: 2, zero: 3 }, {}, async (model, runtime) => {
    await whileServed(model, runtime, async (ask) => {
      for (let step = 0; step < steps; step++) {
        await ask("accumulate/loss", { batch: rangeAt(step) });
        expect((await ask("step")).body).toMatchObject({ step: step + 1, lossNats: ofRun[step] });
      }
      const { rows } = await model.call("logProbs", samples);
      const { body } = await ask("call/logProbs", { batch });
      expect(body.rows).toEqual({
        logProbs: {
          dtype: "float32",
          shape: rows.logProbs.shape,
          values: Array.from(rows.logProbs.toTypedArray(), Number),
        },
      });
      rows.logProbs.dispose();
      const prompts = [[84, 104], [49]];
      const texts = await model.generate(prompts, { ...options, samples: 2 });
      expect((await ask("generate", { prompts, samples: 2, ...options })).body.texts).toEqual(texts);
      const advantages = { dtype: "float32", values: [1, -1, 0.5, 0] };
      const accumulated = await ask("accumulate/policy", {
        batch: { ...batch, advantages },
        args: { factor: 0.5 },
      });
      expect(accumulated.body).toEqual({ lossNats: expect.any(Number) });
    });
  });
  expect(lossesIn(events).slice(0, steps)).toEqual(ofRun);
  expect(liveRefs()).toBe(0);
});

it("a client by HTTP compares with a frozen copy, evaluates, and goes back to a saved state", async () => {
  const layout = { ranks: 1, checkpoint: { dir: workspace.path("gone back") } };
  await withModel(workspace, layout, {}, async (model, runtime) => {
    await whileServed(model, runtime, async (ask, _address, end) => {
      const rowsAt = async (path: string) =>
        (await ask(`${path}call/logProbs`, { batch: rangeAt(9) })).body.rows;
      const train = async () => {
        await ask("accumulate/loss", { batch: rangeAt(0) });
        return (await ask("step", { lr: 1e-2 })).body.lossNats;
      };
      const { path } = (await ask("save", { as: "before" })).body;
      expect((await ask("frozen")).body).toEqual({ path: "/frozen/1" });
      const before = await rowsAt("");
      expect(await rowsAt("frozen/1/")).toEqual(before);
      const loss = await train();
      expect(await rowsAt("")).not.toEqual(before);
      expect(await rowsAt("frozen/1/")).toEqual(before);
      const prompt = { prompts: [[84]], maxNewTokens: 2, temperature: 0 };
      expect((await ask("frozen/1/generate", prompt)).body.texts).toHaveLength(1);
      expect((await ask("frozen/1/evaluate")).body).toEqual({
        validation: expect.objectContaining({ lossNats: expect.any(Number) }),
      });
      expect((await ask("load", { folder: path })).body).toEqual({ step: 2 });
      expect(await rowsAt("")).toEqual(before);
      expect(await train()).toBe(loss);
      expect((await ask("load", { folder: workspace.path("nothing") })).status).toBe(404);
      for (const status of [200, 404]) expect((await end("frozen/1")).status).toBe(status);
      expect((await ask("frozen/1/call/logProbs", { batch: rangeAt(9) })).body.message).toMatch(
        /no frozen copy at \/frozen\/1/,
      );
      const many = await Promise.all(Array.from({ length: 12 }, () => ask("frozen")));
      expect(many.map(({ status }) => status).toSorted()).toEqual([
        ...Array(8).fill(200),
        ...Array(4).fill(409),
      ]);
    });
  });
  expect(liveRefs()).toBe(0);
});

it("refuses by HTTP what a script is refused, and callers without the token, and goes on", async () => {
  const layout = { ranks: 2, checkpoint: { dir: workspace.path("saved") } };
  await withModel(workspace, layout, {}, async (model, runtime) => {
    await whileServed(model, runtime, async (ask, address) => {
      const refused = [
        ["accumulate/lss", { batch: rangeAt(0) }, /such as .*, got lss \(did you mean loss\?\)/],
        ["accumulate/loss", { batch: { inputIds: [[1, 2], [3]] } }, /expected rows of one shape/],
        ["accumulate/loss", { batch: { inputIds: [[1.5]] } }, /integers in inputIds; .*float32/],
        ["accumulate/loss", { batch: { x: { dtype: "bits", values: [1] } } }, /the dtype of x to be one of/],
        ["accumulate/loss", { batch: { ...rangeAt(0), numSamples: 3 } }, /a multiple of 2 samples/],
        ["accumulate/loss", { bacth: rangeAt(0) }, /expected batch, args, got "bacth"/],
        ["step", {}, /something accumulated/],
        ["step", { lr: "fast" }, /./],
        ["generate", { prompts: "The" }, /expected "prompts"/],
        ["generate", { prompts: [[1]], maxNewTokens: -1 }, /maxNewTokens/],
        ["save", { as: "../x" }, /a name such as best/],
      ] as const;
      for (const [path, fields, message] of refused) {
        const { status, body } = await ask(path, fields);
        expect([path, status, body.message]).toEqual([path, 400, expect.stringMatching(message)]);
      }
      expect((await ask("nothing")).status).toBe(404);
      expect((await fetch(`${address}/step`)).status).toBe(401);
      await ask("accumulate/loss", { batch: rangeAt(0) });
      expect((await ask("step")).body).toMatchObject({ step: 1 });
      expect((await ask("save", { as: "mine" })).body).toMatchObject({ step: 1, path: expect.any(String) });
    });
  });
});
