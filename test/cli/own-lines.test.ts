import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { TroupeEvent } from "../../src/job/events/index.ts";
import { type JobParts, jobText, OwnFolder } from "../fixtures/own-folder.ts";

/** A model of which the second layer cannot compute. */
const CROOKED = `class Attention extends Module {
  q = new Linear(16, 16);
  forward(x) {
    return this.q.forward(x);
  }
}
class Layer extends Module {
  attn = new Attention();
  #width;
  constructor(width) {
    super();
    this.#width = width;
  }
  forward(x) {
    return this.attn.forward(x.narrow(1, 0, this.#width));
  }
}
class Net extends Module {
  layers = new ModuleList([new Layer(16), new Layer(8)]);
  forward(x) {
    let h = x.to("float32");
    for (const layer of this.layers) h = layer.forward(h);
    return h.mean();
  }
}`;

describe("an error of a job's own", () => {
  const own = new OwnFolder();
  afterAll(() => own[Symbol.dispose]());

  const run = async (parts: JobParts | string, ...flags: string[]) => {
    own.write("job.ts", typeof parts === "string" ? parts : jobText(parts));
    return own.troupe("run", "job.ts", ...flags);
  };

  it("shows the line of the loss that threw it, with a mark under the place, once, and no line of anybody else", async () => {
    const { code, err } = await run({
      loss: "(model, batch) => {\n    const nothing = undefined;\n    return nothing.foo;\n  }",
    });
    const complaint = err.slice(err.indexOf("troupe: "));
    expect(complaint).toBe(
      [
        "troupe: Cannot read properties of undefined (reading 'foo')",
        "  in the job's loss, on rank-0",
        "  at job.ts:10:20 (loss)",
        "  10 |     return nothing.foo;",
        "     |                    ^",
        "",
      ].join("\n"),
    );
    expect(err.match(/Cannot read/g)).toHaveLength(1);
    // Nothing that only follows from it goes before it.
    expect(err).not.toMatch(/could not be saved|undelivered/);
    expect(code).toBe(1);
  });

  it.each(["thread", "process"])(
    "names the operands' shapes, the path of the module and the lines that led there, from a %s",
    async (placement) => {
      const { code, err } = await run(
        { top: CROOKED, model: "() => new Net()", loss: "(model, { inputIds }) => model.forward(inputIds)" },
        "--placement",
        placement,
        ...["--ranks", "2", "--events", `${placement}.jsonl`],
      );
      expect(err).toMatch(/\[linear\] .*input float32\[4,8\].*weight float32\[16,16\]/);
      expect(err).toMatch(/in the job's loss, in module layers\.1\.attn\.q, on rank-[01]/);
      expect(err).toMatch(
        /at job\.ts:5:19 \(Attention\.forward\)\n {2}5 \| {5}return this\.q\.forward\(x\);\n.*\^\n {2}called at job\.ts:16:22 \(Layer\.forward\)/,
      );
      expect(err).not.toMatch(/rank-loop|node:internal|restarted/);
      expect(code).toBe(1);
      const events = readFileSync(join(own.folder, `${placement}.jsonl`), "utf8")
        .trim()
        .split("\n");
      const failed = events
        .map((line) => JSON.parse(line) as TroupeEvent)
        .find(({ kind }) => kind === "run.failed");
      expect(failed).toMatchObject({
        kind: "run.failed",
        error: {
          code: "TENSOR_OP_FAILED",
          from: { call: "loss", module: "layers.1.attn.q" },
          frames: [
            { file: join(own.folder, "job.ts"), line: 5, column: 19, call: "Attention.forward" },
            {},
            {},
            {},
          ],
        },
      });
    },
  );

  it("names the operator's argument that is nothing, and the line that gave it", async () => {
    const { err } = await run({
      model: "() => new Linear(16, 16)",
      loss: "(model, batch) => model.forward(batch.inputs).mean()",
    });
    expect(err).toMatch(
      /^troupe: \[linear\] expected input to be a tensor, got undefined\n {2}in the job's loss, .*\n {2}at job\.ts:8:\d+ \(loss\)\n {2}8 \| .*batch\.inputs/m,
    );
  });

  it("is waited for with a word where it keeps the first step up", async () => {
    const { code, err } = await run({
      top: "let numLosses = 0;",
      loss: "(model, { inputIds, targets }) => {\n    if (++numLosses === 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 11_000);\n    return model.forward(inputIds, { targets }).loss;\n  }",
    });
    expect(err).toContain("has waited for 0:10 for the first step\n");
    expect(code).toBe(0);
  });

  it("shows every frame and the code with --debug, or where TROUPE_DEBUG is set", async () => {
    const { err } = await run({ loss: "() => undefined.foo" }, "--debug");
    expect(err).toMatch(/^troupe: TypeError: Cannot read.*\n {4}at Object\.loss \(.*job\.ts:8:25\)\n/m);
    expect(err).toMatch(/^ {4}at RankLoop\.run .*\.(ts|js):\d+/m);
  });

  const refused: [string, JobParts | string, RegExp][] = [
    [
      "a syntax error",
      { loss: "() => (3 + ;" },
      /got a syntax error: Expression expected\n {2}at job\.ts:8:20\n {2}8 \| .*\n.*\^/,
    ],
    [
      "an export that is misspelled",
      { top: `import { Lineer } from "troupe";` },
      /got an import of Lineer, which troupe does not export \(did you mean Linear\?\)\n {2}at job\.ts:2:10/,
    ],
    [
      "an export of another entry",
      { top: `import { Lion } from "troupe/nn";` },
      /got an import of Lion, which troupe\/nn does not export \(import it from troupe\/optim\)\n {2}at job\.ts:2:10/,
    ],
    [
      "a package that is not installed",
      { top: `import nothing from "trouppe";` },
      /got an import of trouppe, which is not installed \(did you mean troupe\?\)\n {2}at job\.ts:2:22/,
    ],
    [
      "a file of another extension",
      { top: `import text from "./text.js";` },
      /got an import of .*text\.js, which does not exist \(did you mean text\.txt\?.*\)\n {2}at job\.ts:2:21/,
    ],
    [
      "an error while it is loaded",
      { top: "const layers = nowhere;" },
      /got an error while it was loaded: nowhere is not defined\n {2}at job\.ts:2:16/,
    ],
    [
      "an enum",
      { top: "enum Kind { one }" },
      /got TypeScript enum is not supported.*a const object for an enum\)\n {2}at job\.ts:2:1/,
    ],
    [
      "a part that is misspelled",
      { more: "wiegh: () => 1," },
      /got wiegh, which no job has \(did you mean weigh\?\)/,
    ],
    [
      "parts of wrong kinds, all of them at once",
      { training: "null", optimizer: `"adam"`, more: "weigh: 3," },
      /got training: null; optimizer: "adam"; weigh: 3 /,
    ],
    [
      "a training that gives nothing",
      { training: "() => {}" },
      /expected the job's training to be a plan .*, got undefined\n {2}in the job's training\n {2}at job\.ts:5:\d+ \(training\)\n {2}5 \|/,
    ],
    [
      "data that are none",
      { data: "() => []" },
      /\[data\] expected data\(…\) to give .*, got an array\n {2}in the job's data.*\n {2}at job\.ts:6:\d+ \(data\)\n/,
    ],
    [
      "a model that gives nothing",
      { model: "() => {}" },
      /expected model\(…\) of the job to give a module, got undefined \(is there a return\?\)\n.*\n {2}at job\.ts:7:\d+ \(model\)\n/,
    ],
    [
      "a training that is async",
      { training: "async () => ({ steps: 3, batchSize: 8 })" },
      /\[training\] expected the job's training to be a plan .*, got a promise \(leave async out\)\n.*\n {2}at job\.ts:5:/,
    ],
    [
      "a schedule that is a number",
      { more: "schedule: () => 1e-3," },
      /\[schedule\] expected schedule\(…\) of the job to give a schedule, .*, got 0\.001\n.*\n {2}at job\.ts:10:\d+ \(schedule\)\n/,
    ],
    [
      "a schedule whose rate is a text",
      { more: 'schedule: () => ({ lrAt: () => "x" }),' },
      /expected lrAt\(1\) to be a number ≥ 0, got "x"\n.*\n {2}at job\.ts:10:/,
    ],
    [
      "an optimizer without parameters",
      { optimizer: "() => new AdamW({})" },
      /expected parameters to be names with shapes, .*, got object\n.*\n {2}at job\.ts:9:/,
    ],
    [
      "an optimizer that is async",
      { optimizer: "async (parameters) => new AdamW(parameters)" },
      /to give an optimizer, or a list of them, got a promise \(leave async out\)\n.*\n {2}at job\.ts:9:/,
    ],
    [
      "an optimizer that gives nothing",
      { optimizer: "() => {}" },
      /to give an optimizer, or a list of them, got undefined \(is there a return\?\)\n.*\n {2}at job\.ts:9:\d+ \(optimizer\)\n/,
    ],
  ];
  it.each(refused)("refuses %s on its line, with exit code 2", async (_what, parts, message) => {
    const { code, err } = await run(parts);
    expect(err).toMatch(message);
    expect(err).not.toMatch(/^ {4}at /m);
    expect(code).toBe(2);
  });

  const losses: [string, string, RegExp][] = [
    [
      "a number",
      "(model, { inputIds, targets }) => model.forward(inputIds, { targets }).loss.item()",
      /got the number 5\.\d+ \(give the tensor/,
    ],
    [
      "a promise",
      "async (model, { inputIds, targets }) => model.forward(inputIds, { targets }).loss",
      /got a promise \(leave async out/,
    ],
    ["nothing", "() => {}", /got undefined \(is there a return\? A model returns its loss only/],
    [
      "more than a scalar",
      "(model, { inputIds }) => model.forward(inputIds).logits",
      /got a tensor of shape \[8,16,\d+\] \(take its mean/,
    ],
    [
      "what no parameter has a part in",
      "() => tensor([1.5]).sum()",
      /expected a loss that depends on the model's parameters, got one that needs no gradient/,
    ],
  ];
  it.each(losses)(
    "says of a loss that is %s what it has to be and where it is written, and does not try again",
    async (_what, loss, message) => {
      const { code, err } = await run({ loss });
      expect(err).toMatch(message);
      // Only backward shows that a loss depends on no parameter.
      if (!/no gradient/.test(err))
        expect(err).toMatch(/\n {2}in the job's loss, on rank-0\n {2}at job\.ts:8:\d+ \(loss\)\n {2}8 \| /);
      expect(err).toMatch(/troupe: \[loss\] expected /);
      expect(err).not.toMatch(/restarted/);
      expect(code).toBe(1);
    },
  );

  it.each([
    [
      "walks itself back",
      "(model, { inputIds, targets }) => { const { loss } = model.forward(inputIds, { targets }); loss.backward(); return loss; }",
      /\[backward\] expected no call in a forward whose gradients the run computes, got one/,
    ],
    [
      "is of logits that nobody returned",
      "(model, { inputIds, targets }) => crossEntropy(model.forward(inputIds).logit, targets)",
      /\[crossEntropy\] expected logits to be a tensor, got undefined/,
    ],
    [
      "computes with a module's parameter for its tensor",
      "(model, { inputIds, targets }) => model.forward(inputIds, { targets }).loss.mul(model.lm_head.weight)",
      /\[mul\] expected other to be a tensor, got a Parameter \(its tensor is \.tensor\)/,
    ],
    [
      "makes a module of its own",
      "() => new Linear(2, 2).forward(tensor([[1, 2]])).mean()",
      /\(a module made inside forward is not part of the model: make it a property/,
    ],
  ])("an error is one sentence with the job's line when a loss %s", async (_what, loss, message) => {
    const { code, err } = await run({ top: 'import { crossEntropy } from "troupe";', loss });
    expect(err).toMatch(message);
    expect(err).toMatch(/ {2}in the job's loss, .*on rank-0\n {2}at job\.ts:8:\d+ \(loss\)\n {2}8 \| /);
    expect(code).toBe(1);
  });

  it("is what process.exit in a job is, with the line that called it", async () => {
    const { code, err } = await run({ loss: "() => process.exit(0)" });
    expect(err).toMatch(
      /got process\.exit\(0\) \(to end the run, throw an error\)\n.*\n {2}at job\.ts:8:23 \(loss\)/,
    );
    expect(code).toBe(1);
  });

  it.each(["model", "training"] as const)(
    "is what process.exit in %s is, which the first thread calls too",
    async (name) => {
      const { code, err } = await run({ [name]: "() => process.exit(0)" });
      expect(err).toMatch(
        new RegExp(`expected ${name}\\(…\\) of the job to return or to throw, got process\\.exit\\(0\\)`),
      );
      expect(err).toMatch(new RegExp(`at job\\.ts:\\d+:\\d+ \\(${name}\\)`));
      expect(code).toBe(1);
    },
  );

  it.each([
    [
      "loaded, for an await that nothing settles",
      { top: "await new Promise(() => setInterval(() => {}, 1000));" },
      3,
      /expected job\.ts to be loaded within 3 s/,
    ],
    ["loaded, for a loop without end", { top: "for (;;);" }, 3, /expected job\.ts to be loaded within 3 s/],
    [
      "opened, for a promise that nothing settles",
      { data: "() => new Promise(() => {})" },
      // The job has to be loaded within as much, which a slow or busy machine did not do in 3 s.
      9,
      /expected the job's data\(…\) to be open within 9 s/,
    ],
  ])("is that it is never %s", async (_what, parts: JobParts, seconds, message) => {
    const { code, err } = await run(parts, "--deadline", `${1000 * seconds}`);
    expect(err).toMatch(message);
    expect(code).not.toBe(0);
  });

  it("a job's timer does not keep the program alive, and is reported", async () => {
    const { code, err } = await run({ top: "setInterval(() => {}, 1000);" });
    expect(err).toMatch(/done: 3 steps/);
    expect(err).toMatch(/troupe: ended with something still running: Timeout/);
    expect(code).toBe(0);
  });

  it("is a tensor plan that says nowhere where positions begin to be shared, before any rank starts", async () => {
    const parts = {
      top: 'import { column, row } from "troupe/nn";',
      more: 'tensorPlan: () => ({ "transformer.h.*.mlp.c_fc": column(), "transformer.h.*.mlp.c_proj": row() }),',
    };
    const { code, err } = await run(parts, "--ranks", "2", "--tp", "2", "--sequence-parallel");
    expect(err).toMatch(
      /^troupe: \[sequenceParallel\] expected a tensor plan with sequence\(\{ input: "replicated" \}\)/,
    );
    expect(code).toBe(2);
  });

  it.each(["thread", "process"])(
    "is an endless loop, which is what a run with one ends by, from a %s",
    async (placement) => {
      const { code, err } = await run(
        {
          top: "let numLosses = 0;",
          loss: "(model, { inputIds, targets }) => {\n    if (++numLosses === 3) for (;;);\n    return model.forward(inputIds, { targets }).loss;\n  }",
        },
        ...["--stall", "1000", "--max-restarts", "1", "--placement", placement],
      );
      const [, last = ""] = err.split("troupe: ");
      expect(last).toMatch(
        /^\[rank-0\] expected progress within \d+\.\d s, got none: loss\(…\) of the job has not returned for/,
      );
      expect(last).toMatch(/ {2}at job\.ts:9:\d+ \(loss\)\n/);
      expect(code).toBe(1);
    },
  );
});
