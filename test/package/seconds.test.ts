// From an empty folder to a trained job by prebuilt packages, on a machine without compiler, cmake and Python.
import { spawn } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { layOut } from "../../scripts/package/native-package.mjs";
import { npmPack, packWithAddons } from "../../scripts/package/pack.mjs";
import { addonIn, readBuildInfo, writeBuildInfo } from "../../scripts/setup/build-info.mjs";
import { wheelOfThisMachine } from "../../scripts/setup/wheels.mjs";
import { builtLibtorch, placeLibtorch } from "../fixtures/readable-libtorch.ts";
import { InstalledPackage, productionPackages } from "./installed.ts";
import { LocalProxy } from "./proxy.ts";
import { Registry } from "./registry.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const built = join(root, "build");
const info = readBuildInfo(built);
const libtorch = builtLibtorch as NonNullable<typeof builtLibtorch>;
const isRoot = process.getuid?.() === 0;
/** A user who owns nothing here. */
const nobody = 65_534;

/** The wheel that set-up would fetch, where this machine keeps one. */
const wheel = (process.env.PIP_FIND_LINKS ?? "")
  .split(/\s+/)
  .map((folder) => join(folder, wheelOfThisMachine()?.file ?? "none"))
  .find((path) => existsSync(path));
if (wheel === undefined)
  process.stderr.write("test/package/seconds: SKIPPED, nothing was fetched: PIP_FIND_LINKS has no wheel\n");

describe.skipIf(builtLibtorch === undefined)("seconds to the first step", () => {
  const product = new InstalledPackage();
  const registry = new Registry();
  /** The suite's own folder for temporary files is closed to other users. */
  const open = mkdtempSync("/tmp/troupe-test-");
  /** Where programs are that each machine with Node has. */
  const programs = join(open, "bin");
  let home: string;
  let project: string;

  beforeAll(async () => {
    await registry.listen();
    for (const path of productionPackages()) registry.publishFolder(join(root, path));
    const addons = join(product.folder, "addons");
    const name = placeAddon(addons);
    const packed = await npmPack(join(addons, "package"), addons);
    const troupe = await packWithAddons(await product.pack(), addons, { [name]: "0.1.0" });
    for (const { filename } of [packed, troupe]) registry.publish(readFileSync(join(addons, filename)));
    mkdirSync(programs);
    cpSync(process.execPath, join(programs, "node"));
    for (const tool of ["npm", "npx"]) {
      const script = realpathSync(which(tool));
      writeFileSync(join(programs, tool), `#!/bin/sh\nexec node "${script}" "$@"\n`, { mode: 0o755 });
    }
    symlinkSync("/bin/sh", join(programs, "sh"));
    chmodSync(open, 0o755);
  }, 300_000);
  afterAll(() => {
    registry.close();
    product.remove();
    rmSync(open, { recursive: true });
  });

  beforeEach(() => {
    home = mkdtempSync(join(open, "home-"));
    project = join(home, "project");
    mkdirSync(project);
    writeFileSync(join(project, "package.json"), '{ "private": true, "type": "module" }\n');
    cpSync(join(root, "examples/hello/job.ts"), join(project, "job.ts"));
    cpSync(join(root, "README.md"), join(project, "README.md"));
    if (isRoot)
      for (const path of ["", ...readdirSync(home, { recursive: true, encoding: "utf8" })])
        chownSync(join(home, path), nobody, nobody);
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));

  const install = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "troupe"];
  const train = ["npx", "troupe", "run", "job.ts", "--ranks", "2", "--set", "steps=3", "--json"];

  /** Runs a command line in the project, as a user who is not root, with nothing of this process's environment. */
  function run([program = "", ...args]: readonly string[], env: NodeJS.ProcessEnv = {}) {
    const child = spawn(program, args, {
      cwd: project,
      env: { PATH: programs, HOME: home, npm_config_registry: registry.url, NO_PROXY: "127.0.0.1", ...env },
      stdio: ["ignore", "pipe", "pipe"],
      ...(isRoot ? { uid: nobody, gid: nobody } : {}),
    });
    const ended = { out: "", err: "", code: -1 };
    child.stdout.on("data", (text) => (ended.out += text));
    child.stderr.on("data", (text) => (ended.err += text));
    return new Promise<typeof ended>((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code) => resolve({ ...ended, code: code ?? -1 }));
    });
  }

  async function timed(title: string, body: () => Promise<void>): Promise<void> {
    const startMs = performance.now();
    await body();
    const seconds = (performance.now() - startMs) / 1_000;
    process.stderr.write(`test/package/seconds: ${title} ${seconds.toFixed(1)} s\n`);
  }

  async function succeed(command: readonly string[], env: NodeJS.ProcessEnv = {}) {
    const ended = await run(command, env);
    expect(ended, ended.err).toMatchObject({ code: 0 });
    return ended;
  }

  /** A virtual environment with torch in it. */
  function placePython(): string {
    const site = join(home, "venv", "lib", "python3.11", "site-packages");
    mkdirSync(site, { recursive: true });
    const torch = join(site, "torch");
    const folder = dirname(libtorch.libraries);
    mkdirSync(torch);
    placeLibtorch(join(torch, "lib"));
    for (const name of ["version.py", "share"])
      cpSync(join(folder, name), join(torch, name), { recursive: true });
    return join(home, "venv");
  }

  it("are printed, and pass without a compiler, cmake or Python where libtorch is at hand", {
    timeout: 120_000,
  }, async () => {
    const env = { VIRTUAL_ENV: placePython() };
    const before = registry.sentBytes;
    await timed("npm install", async () => void (await succeed(install)));
    await timed("first run", async () => {
      const { out, err } = await succeed(train, env);
      expect(lossesIn(out)).toHaveLength(3);
      expect(err).not.toContain("set-up");
    });
    await timed("later run", async () => void (await succeed(train, env)));
    const bytes = { fetched: registry.sentBytes - before, installed: bytesOf(join(project, "node_modules")) };
    process.stderr.write(
      `test/package/seconds: ${(bytes.fetched / 1e6).toFixed(1)} MB fetched, ${(bytes.installed / 1e6).toFixed(1)} MB installed\n`,
    );
    const { out } = await succeed(["npx", "troupe", "doctor"], env);
    expect(out).toMatch(
      /^ok +addon +of @troupe\/native-\S+ with .*\/venv\/lib\/python3.11\/site-packages\/torch/m,
    );
    expect(out).toMatch(/^looked +cmake +does not run; nothing is to be compiled$/m);
  });

  it("say what can be done where neither libtorch nor its wheel can be had", {
    timeout: 120_000,
  }, async () => {
    await succeed(install);
    const { code, err } = await run(train, { TROUPE_WHEELS: join(home, "nowhere") });
    expect(code).toBe(1);
    expect(err).toMatch(/^troupe set-up: \[libtorch\] expected one here, or its wheel, got neither/m);
    expect(err).toMatch(/nowhere\/torch-.*whl: no such file$/m);
    expect(err).toMatch(/^ {2}export TROUPE_WHEELS=/m);
    const { out } = await run(["npx", "troupe", "doctor"]);
    expect(out).toMatch(/^ok +libtorch +none; the first use fetches its wheel$/m);
    expect(out).toMatch(/^ok +addon +the first use takes @troupe\/native-.* \(no libtorch is here\)$/m);
  });

  it.skipIf(wheel === undefined)(
    "fetch the wheel once for two processes, through a proxy, and use it again in the next project",
    { timeout: 300_000 },
    async () => {
      registry.file(`/whl/${wheelOfThisMachine()?.file}`, readFileSync(wheel as string));
      const proxy = new LocalProxy(registry.port);
      await proxy.listen();
      try {
        const env = {
          HTTP_PROXY: proxy.url,
          TROUPE_WHEELS: "http://wheels.test/whl",
          npm_config_registry: "http://registry.test",
          NO_PROXY: "",
        };
        await succeed(install, env);
        await timed("first run with the fetch, twice", async () => {
          const both = await Promise.all([run(train, env), run(train, env)]);
          for (const { code, out, err } of both) {
            expect(code, err).toBe(0);
            expect(lossesIn(out)).toHaveLength(3);
          }
          const told = both.map(({ err }) => err.split("\n").filter((line) => line.includes("set-up")));
          expect(told.toSorted()).toEqual([
            [expect.stringMatching(/another process is setting up/)],
            [expect.stringMatching(/^troupe set-up: libtorch .* \.\.\. [\d.]+ s$/)],
          ]);
        });
        expect([...proxy.hosts].toSorted()).toEqual(["registry.test", "wheels.test"]);
        rmSync(join(project, "node_modules"), { recursive: true });
        await succeed(install);
        await timed("first run of the next project", async () => {
          const { err } = await succeed(train);
          expect(err).not.toContain("set-up");
        });
      } finally {
        proxy.close();
      }
    },
  );
});

/** Lays out the package of this tree's addon, which is made to find libtorch by the link beside it. */
function placeAddon(folder: string): string {
  mkdirSync(folder, { recursive: true });
  const addon = readFileSync(addonIn(built));
  const own = libtorch.libraries;
  const begin = addon.indexOf(own);
  const end = addon.indexOf("\0", begin);
  expect(begin).toBeGreaterThan(0);
  addon.fill(0, begin, end).write("$ORIGIN/libtorch", begin);
  writeFileSync(addonIn(folder), addon);
  writeBuildInfo(folder, info as NonNullable<typeof info>);
  return layOut(join(folder, "package"), "0.1.0", folder, libtorch);
}

const lossesIn = (out: string) =>
  [...out.matchAll(/"kind":"step.finished".*"lossNats":([\d.]+)/g)].map(([, loss]) => loss);

function which(program: string): string {
  const found = (process.env.PATH ?? "")
    .split(delimiter)
    .filter((folder) => !folder.includes("node_modules"))
    .map((folder) => join(folder, program))
    .find((path) => existsSync(path));
  if (found === undefined) throw new Error(`no ${program}`);
  return found;
}

function bytesOf(folder: string): number {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => !path.includes("build/libtorch/"))
    .map((path) => lstatSync(join(folder, path)))
    .filter((stats) => stats.isFile())
    .reduce((sum, { size }) => sum + size, 0);
}
