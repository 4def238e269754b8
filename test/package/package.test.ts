import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { InstalledPackage } from "./installed.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const compiler = join(root, "node_modules", "typescript", "bin", "tsc");

/** A script that trains the job beside it, every rank a process, and is served its page. */
const plainScript = `
import { Runtime } from "troupe";
const runtime = await Runtime.spawn({ ranks: 2, zero: 3, placement: "process", dashboard: { port: 0 } });
runtime.on("step.finished", ({ lossNats }) => console.log(lossNats));
const page = new URL(runtime.dashboardUrl);
for (const path of ["/", "/app.js", "/uplot.js"]) {
  page.pathname = path;
  const { status } = await fetch(page);
  console.log(path, status);
}
await runtime.run("job.js", { steps: 3 });
await runtime.stop();
`;

/** A job whose default is true may be set to false: TypeScript would say that the two have no overlap. */
const settingJob = `
import { AdamW, defineJob, Linear, textDataset } from "troupe";
export default defineJob({
  config: { isLong: true, data: "README.md" },
  training: ({ isLong }) => ({ steps: isLong === false ? 1 : 9, batchSize: 2 }),
  data: ({ data }, { seed }) => textDataset({ source: data, tokenizer: "byte", length: 8, seed }),
  model: () => new Linear(2, 2),
  loss: (model, { inputIds }) => model.forward(inputIds),
  optimizer: (parameters) => new AdamW(parameters),
});
`;

const entries = globSync("*.txt", { cwd: join(root, "test", "entries") })
  .map((file) => basename(file, ".txt"))
  .sort();

/** Takes every name of every entry: values are of a type that is not any, types can be written. */
function takingAll(): string {
  const lines = entries.flatMap((entry) => {
    const from = `"troupe${entry === "index" ? "" : `/${entry}`}"`;
    const all = `all_${entry}`;
    const names = read(`test/entries/${entry}.txt`).trim().split("\n");
    const types = names.filter((line) => line.startsWith("type ")).map((line) => line.slice("type ".length));
    const values = names.filter((line) => !line.startsWith("type "));
    return [
      `import * as ${all} from ${from};`,
      ...values.map((name) => `export const ${entry}_${name}: NotAny<typeof ${all}.${name}> = true;`),
      ...types.map((name) => `export type { ${name} as ${entry}_${name} } from ${from};`),
    ];
  });
  return ["type NotAny<T> = 0 extends 1 & T ? false : true;", ...lines, ""].join("\n");
}

describe("the package", () => {
  const installed = new InstalledPackage();
  const strict = ["--ignoreConfig", "--noEmit", "--strict", "--skipLibCheck", "false", "--isolatedModules"];
  const check = (...args: string[]) => installed.run(process.execPath, [compiler, ...strict, ...args]);
  const lossesIn = (out: string) =>
    [...out.matchAll(/"kind":"step.finished".*"lossNats":([\d.]+)/g)].map(([, loss]) => loss);

  beforeAll(async () => {
    await installed.install();
    const text = read("README.md");
    installed.write("README.md", text);
    installed.write("job.ts", read("examples/hello/job.ts"));
    installed.write("train.ts", read("examples/hello/train.ts"));
    installed.write("entries.ts", takingAll());
    installed.write(
      "wrong.ts",
      'import { Runtime } from "troupe";\nRuntime.spawn({ ranks: "2" }).toFixed();\n',
    );
    // A folder that says nothing of modules, in plain JavaScript.
    installed.write("plain/package.json", "{}\n");
    installed.write("plain/README.md", text);
    installed.write("plain/job.js", read("examples/hello/job.ts"));
    installed.write("plain/train.mjs", plainScript);
  });
  afterAll(() => installed.remove());

  it("holds what runs and what builds the addon, and neither sources in TypeScript nor tests, in 3.5 MB", () => {
    const kinds = [
      "dist/entries/index.js",
      "dist/entries/index.d.ts",
      "dist/joined-jobs.js.map",
      "native/CMakeLists.txt",
      "LICENSE",
    ];
    expect(installed.files).toEqual(expect.arrayContaining([...kinds, "bin/troupe.mjs", "README.md"]));
    const folders = new Set(installed.files.map((path) => path.split("/")[0]));
    const files = ["CHANGELOG.md", "LICENSE", "README.md", "package.json"];
    const rooms = ["bin", "dist", "examples", "native", "scripts", "src"];
    expect([...folders].sort()).toEqual([...files, ...rooms].sort());
    expect(installed.files.filter((path) => path.startsWith("src/"))).toEqual(
      entries.map((entry) => `src/entries/${entry}.js`),
    );
    expect(installed.files.filter((path) => /^dist\/.*(?<!\.d)\.ts$/.test(path))).toEqual([]);
    expect(installed.sizeBytes).toBeLessThan(3.5e6);
    const { sources, sourcesContent } = JSON.parse(
      readFileSync(join(installed.home, "dist/joined-jobs.js.map"), "utf8"),
    );
    const runtime = "actors/trainer/runtime.ts";
    expect(sourcesContent[sources.indexOf(`../src/${runtime}`)]).toBe(read(`src/${runtime}`));
  });

  it("is packed without a change to the clone, which runs meanwhile, and after a packing that was killed", async () => {
    const { tree } = installed;
    const manifest = readFileSync(join(tree, "package.json"), "utf8");
    const runs = async () => {
      const line = await installed.run(process.execPath, ["bin/troupe.mjs", "--version"], { cwd: tree });
      const door = 'const { Runtime } = await import("troupe"); console.log(typeof Runtime)';
      const script = await installed.run(process.execPath, ["--input-type=module", "-e", door], {
        cwd: tree,
      });
      expect([line, script]).toMatchObject([
        { code: 0, err: "", out: `${JSON.parse(manifest).version}\n` },
        { code: 0, err: "", out: "function\n" },
      ]);
      expect(readFileSync(join(tree, "package.json"), "utf8")).toBe(manifest);
    };
    // The clone's own modules are what runs there, whatever state dist/ is in.
    writeFileSync(join(tree, "dist", "entries", "index.js"), "throw new Error('dist/');\n");
    const packing = spawn("npm", ["pack"], { cwd: tree, detached: true, stdio: "ignore" });
    const ended = once(packing, "exit");
    let isPacking = true;
    void ended.then(() => {
      isPacking = false;
    });
    let numRuns = 0;
    for (; isPacking; numRuns++) await runs();
    expect((await ended)[0]).toBe(0);
    expect(numRuns).toBeGreaterThan(0);
    const killed = spawn("npm", ["pack"], { cwd: tree, detached: true, stdio: "ignore" });
    const isGone = once(killed, "exit");
    // Packing begins by removing dist/.
    while (existsSync(join(tree, "dist", "entries", "index.js"))) await new Promise(setImmediate);
    process.kill(-(killed.pid as number), "SIGKILL");
    await isGone;
    await runs();
  });

  it.each([
    ["es2022", "nodenext", "nodenext"],
    ["es2022", "node16", "node16"],
    ["es2020", "esnext", "bundler"],
  ])(
    "is typed, each entry of it, for a strict project that checks its libraries too: %s, %s",
    async (target, module, resolution) => {
      const how = ["--target", target, "--module", module, "--moduleResolution", resolution, "--types", ""];
      const { code, out } = await check(...how, "job.ts", "train.ts", "entries.ts", "wrong.ts");
      expect(code).not.toBe(0);
      // All that is wrong is what is meant to be: what is exported has types.
      expect(out).toMatch(/^wrong\.ts\(2,17\): .*'string'.*'number'.*\nwrong\.ts\(2,31\): .*'toFixed'/s);
      expect(out.match(/error TS/g)).toHaveLength(2);
    },
  );

  it.each([[], ["--exactOptionalPropertyTypes"]])(
    "compiles every example, and settings that are truths, in a strict project %s",
    async (...flags) => {
      cpSync(join(root, "examples"), join(installed.project, "examples"), { recursive: true });
      installed.write("setting.ts", settingJob);
      const examples = globSync("examples/*/*.ts", { cwd: installed.project });
      expect(examples.length).toBeGreaterThan(10);
      const node = [
        "--types",
        "node",
        "--allowImportingTsExtensions",
        "--lib",
        "es2024,esnext.disposable,esnext.iterator",
      ];
      const how = ["--target", "es2024", "--module", "nodenext", ...node, ...flags];
      const { code, out } = await check(...how, "setting.ts", ...examples);
      expect(out).toBe("");
      expect(code).toBe(0);
    },
  );

  it("gives every name of every entry to a script", async () => {
    expect(await installed.run(process.execPath, ["entries.ts"])).toMatchObject({ code: 0, err: "" });
  });

  it("the package sets itself up when it first needs the addon, and names what is missing", async () => {
    const env = { TROUPE_LIBTORCH: join(installed.project, "nowhere") };
    const { code, err } = await installed.run("npx", ["troupe", "run", "job.ts"], { env });
    expect(code).toBe(1);
    expect(err).toMatch(
      /^troupe set-up: \[libtorch\] expected TROUPE_LIBTORCH to name a libtorch, got .*my project\/nowhere/m,
    );
    expect(err).toMatch(
      /^troupe: \[native\] expected the built addon at .*, got none \(run `npx troupe doctor`\)$/m,
    );
  });

  it("says to an older Node which it needs, on the command line and in a script", async () => {
    const older = 'data:text/javascript,Object.defineProperty(process.versions,"node",{value:"22.1.0"})';
    const import_ = ["--import", older];
    const line = await installed.run(process.execPath, [
      ...import_,
      join(installed.home, "bin/troupe.mjs"),
      "run",
    ]);
    expect(line.code).toBe(1);
    expect(line.err).toMatch(
      /^\[troupe\] expected Node 24 or newer, got v[\d.]+ at .*npm install node@24.*\n$/,
    );
    const script = await installed.run(process.execPath, [...import_, "train.ts"]);
    expect(script.code).toBe(1);
    expect(script.err).toContain("[troupe] expected Node 24 or newer, got ");
  });

  it("trains by command line and by script, from TypeScript and JavaScript, on threads and in processes, to the same losses", async () => {
    installed.placeAddon();
    const line = await installed.run("npx", [
      "troupe",
      "run",
      "job.ts",
      "--ranks",
      "2",
      "--set",
      "steps=3",
      "--json",
    ]);
    expect(line.code).toBe(0);
    const losses = lossesIn(line.out);
    expect(losses).toHaveLength(3);
    const script = await installed.run(process.execPath, ["train.mjs"], {
      cwd: join(installed.project, "plain"),
    });
    expect(script.err).toBe("");
    expect(script.out.trim().split("\n")).toEqual(["/ 200", "/app.js 200", "/uplot.js 200", ...losses]);
  });
});
