import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "smol-toml";
import { afterAll, describe, expect, it } from "vitest";
import { Runtime } from "../../src/entries/index.ts";
import { TroupeError } from "../../src/errors/index.ts";
import {
  commandSchema,
  environmentOptions,
  fileOptions,
  type Given,
  optionsOf,
  printConfig,
  readCommand,
} from "../../src/job/options/index.ts";

const folder = mkdtempSync(join(tmpdir(), "troupe-config-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The options of a file of this text. */
function file(name: string, text: string): Given[] {
  const path = join(folder, name);
  writeFileSync(path, text);
  return fileOptions(path, commandSchema);
}

const environment = (variables: Record<string, string>) => environmentOptions(variables, commandSchema);

function flag(name: string, value: unknown): Given {
  return { path: name.split("."), value, origin: "flag", by: `--${name}` };
}

function refusalOf(body: () => unknown): string {
  try {
    body();
  } catch (error) {
    if (error instanceof TroupeError) return error.message;
    throw error;
  }
  throw new Error("nothing was refused");
}

describe("options from several sources", () => {
  it("flags override the environment, which overrides the file, which overrides the defaults", () => {
    const given = [
      ...file("a.toml", 'ranks = 2\ntp = 2\npp = 2\n[checkpoint]\ndir = "a"\neverySteps = 5\n'),
      ...environment({ TROUPE_TP: "4", TROUPE_PP: "4", TROUPE_CHECKPOINT_EVERY_STEPS: "6" }),
      flag("pp", 8),
    ];
    const { runtime, layers } = readCommand(given);
    expect(runtime).toEqual({ ranks: 2, tp: 4, pp: 8, checkpoint: { dir: "a", everySteps: 6 } });
    const origins = [["ranks"], ["tp"], ["pp"], ["checkpoint", "dir"], ["zero"]].map(
      (path) => layers.sourceOf(path)?.origin,
    );
    expect(origins).toEqual(["file", "environment", "flag", "file", undefined]);
  });

  it("mean the same in TOML, in JSON and in the environment, sizes with units too", () => {
    const runs = [
      file(
        "same.toml",
        'prefetchBytes = "64MB"\nrecompute = ["attn"]\nzero = "fsdp"\n[output]\njson = true\n',
      ),
      file(
        "same.json",
        JSON.stringify({ prefetchBytes: "64MB", recompute: ["attn"], zero: "fsdp", output: { json: true } }),
      ),
      environment({
        TROUPE_PREFETCH_BYTES: "64MB",
        TROUPE_RECOMPUTE: "attn",
        TROUPE_ZERO: "fsdp",
        TROUPE_OUTPUT_JSON: "true",
      }),
    ].map((given) => readCommand(given));
    for (const { runtime, output } of runs) {
      expect(runtime).toEqual({ prefetchBytes: 64_000_000, recompute: ["attn"], zero: "fsdp" });
      expect(output.json).toBe(true);
    }
  });

  it("a dashboard's options stay if a stronger source only turns it on, and go if it turns the dashboard off", () => {
    const named = file("page.toml", "[dashboard]\nport = 5000\n");
    expect(readCommand([...named, flag("dashboard", true)]).runtime).toEqual({ dashboard: { port: 5000 } });
    expect(readCommand([...named, flag("dashboard", false)]).runtime).toEqual({ dashboard: false });
  });

  it("have a variable each, which no other has", () => {
    const names = optionsOf(commandSchema).map(({ path }) => path.join("_").toUpperCase());
    expect(new Set(names).size).toBe(names.length);
  });

  it("options enable tracing if a trace file is named, unless another option disables it", () => {
    expect(readCommand([flag("output.traceFile", "t.json")]).runtime).toEqual({ trace: true });
    expect(readCommand([flag("output.traceFile", "t.json"), flag("trace", false)]).runtime).toEqual({
      trace: false,
    });
  });
});

describe("what none is called or none takes", () => {
  it.each([
    ["rnks = 2", /expected an option, got rnks \(did you mean ranks\?; from .*typo\.toml\)$/],
    [
      '[checkpoint]\ndir = "a"\neveryStep = 5',
      /an option of checkpoint, got everyStep \(did you mean everySteps\?; from/,
    ],
    [
      "[output]\nmlflowCheckpoints = true",
      /expected output\.mlflowCheckpoints to be false without mlflow, .*, got true \(from/,
    ],
    ["[output]\njsn = true", /an option of output, got jsn \(did you mean json\?; from/],
    ["ranks = 0", /expected ranks to be a whole number from 1 to 256, got 0 \(from .*typo\.toml\)$/],
    ['ranks = "two"', /expected ranks to be .*, got two \(from/],
    ["[checkpoint]", /expected checkpoint\.dir to be a folder, got undefined \(.*; from .*typo\.toml\)$/],
    [
      '[lossScale]\nkind = "bmtrain"\ngoodStep = 3',
      /an option of lossScale, got goodStep \(did you mean goodSteps\?; /,
    ],
  ])("is refused in a file with its name: %s", (text, message) => {
    expect(refusalOf(() => readCommand(file("typo.toml", text)))).toMatch(message);
  });

  it.each([
    ["bad.toml", "ranks = 2\n[checkpoint\n", /expected TOML in .*bad\.toml, got .* \(line 2, column \d+\)$/],
    ["bad.json", "{", /expected JSON in .*bad\.json, got /],
    ["list.json", "[1]", /expected an object of options in .*list\.json, got \[1\]$/],
  ])("is refused as a file: %s", (name, text, message) => {
    expect(refusalOf(() => file(name, text))).toMatch(message);
  });

  it("is refused as a name that objects inherit", () => {
    for (const text of [
      '{ "__proto__": { "ranks": 2 } }',
      '{ "checkpoint": { "__proto__": { "dir": "a" } } }',
    ])
      expect(refusalOf(() => readCommand(file("inherited.json", text)))).toMatch(
        /expected an option.*, got __proto__/,
      );
    expect("ranks" in {}).toBe(false);
  });

  it("is refused as a file that is not there", () => {
    expect(refusalOf(() => fileOptions("/nowhere/a.toml", commandSchema))).toMatch(
      /expected a file of options that can be read in \/nowhere\/a\.toml, got no such file$/,
    );
  });

  it("is refused as a variable that is nearly one of ours; others of the prefix say other things", () => {
    expect(refusalOf(() => environment({ TROUPE_RANK: "2" }))).toMatch(
      /got TROUPE_RANK \(did you mean TROUPE_RANKS\?\)$/,
    );
    expect(environment({ TROUPE_LIBTORCH: "/opt/libtorch", TROUPE_CONFIG: "a.toml", RANKS: "2" })).toEqual(
      [],
    );
    expect(refusalOf(() => readCommand(environment({ TROUPE_RANKS: "x" })))).toMatch(
      /got x \(from TROUPE_RANKS\)$/,
    );
  });

  it("is refused as a flag with the flag's own name", () => {
    expect(refusalOf(() => readCommand([flag("zero", 4)]))).toMatch(/got 4 \(from --zero\)$/);
  });
});

describe("a printed configuration", () => {
  const given = [
    { path: ["steps"], value: 60, origin: "job", by: "" } as const,
    { path: ["checkpoint", "dir"], value: "runs/x", origin: "default", by: "" } as const,
    ...file("b.toml", "ranks = 2\n[set]\nlayers = 3\n"),
    ...environment({ TROUPE_ZERO: "1" }),
    flag("precision", "bf16"),
  ];
  const printed = printConfig(readCommand(given), { layers: 3, heads: 2 });

  it("has every option that a file can give, with its value and who gave it", () => {
    expect(printed).toMatch(/^ranks = 2 +# file .*b\.toml$/m);
    expect(printed).toMatch(/^zero = 1 +# environment TROUPE_ZERO$/m);
    expect(printed).toMatch(/^precision = "bf16" +# flag --precision$/m);
    expect(printed).toMatch(/^steps = 60 +# job$/m);
    expect(printed).toMatch(/^tp = 1 +# default$/m);
    expect(printed).toMatch(/^layers = 3 +# file .*b\.toml$/m);
    expect(printed).toMatch(/^# \[offload\]$/m);
    const missing = optionsOf(commandSchema).filter(({ path, type }) => {
      const name = path.at(-1) ?? "";
      return (
        type === undefined &&
        !new RegExp(`^#? ?\\[?${name}`, "m").test(printed) &&
        !printed.includes(`.${name}]`)
      );
    });
    expect(missing.map(({ name }) => name)).toEqual([]);
  });

  it("of a runtime has what the script gave, and its defaults", async () => {
    const sink = { write: () => {}, close: async () => {} };
    await using runtime = await Runtime.spawn({
      ranks: 2,
      checkpoint: { dir: "runs/y" },
      lossScale: { kind: "bmtrain", scale: 1024 },
      seed: undefined,
      sinks: [sink],
    });
    expect(runtime.options).toMatch(/^ranks = 2 +# script$/m);
    expect(runtime.options).toMatch(/^seed = 1337 +# default$/m);
    expect(runtime.options).toMatch(/^lossScale = \{ kind = "bmtrain", scale = 1024 \} +# script$/m);
    expect(runtime.options).toMatch(/^whenBusy = "wait" +# default$/m);
    expect(runtime.options).toMatch(/^dir = "runs\/y" +# script$/m);
    const again = readCommand(file("script.toml", runtime.options)).runtime;
    expect(again).toMatchObject({ ranks: 2, lossScale: { kind: "bmtrain", scale: 1024 } });
  });

  it("is a file that means the same", () => {
    const again = readCommand(file("again.toml", printed));
    const { set, output: _output, ...values } = parse(printed);
    expect(set).toEqual({ layers: 3, heads: 2 });
    expect(again.runtime).toEqual(values);
    expect(again.runtime).toMatchObject({ ranks: 2, zero: 1, precision: "bf16", steps: 60 });
  });
});
