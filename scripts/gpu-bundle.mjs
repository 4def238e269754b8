// node scripts/gpu-bundle.mjs FILE.tar: carries Troupe to a Linux machine that has a GPU, a CUDA libtorch, nvcc, cmake and
// ninja, but neither Node nor npm nor a network (docs/guide/gpus.md). There:
//
//   tar xf FILE.tar && bash troupe-gpu/gpu.sh [COMMAND]
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { readArguments } from "./arguments.mjs";
import { layout, productNode, root } from "./setup/layout.mjs";
import { main, note, SetupError } from "./setup/say.mjs";

/** The parts of the repository that the bundle carries: all that builds, runs and tests it. */
const carried = [
  "src",
  "native",
  "scripts",
  "bin",
  "examples",
  "bench",
  "test",
  "package.json",
  "tsconfig.json",
  "vitest.config.ts",
];

/** Files of packages that nothing loads. */
const idle =
  /(\.map|\.d\.[cm]?ts|\.md|\.flow)$|\/(rxjs\/(src|dist\/(esm|esm5|bundles|types))|zod\/src|docs?)(\/|$)/;

const { positionals } = readArguments(
  "usage: npm run gpu:bundle -- [FILE.tar]\n\nPacks build/troupe-gpu.tar, or FILE",
  {},
  1,
);
await main(async () => {
  const file = resolve(positionals[0] ?? "build/troupe-gpu.tar");
  const work = mkdtempSync(join(tmpdir(), "troupe-gpu-"));
  try {
    const folder = join(work, "troupe-gpu");
    mkdirSync(folder);
    packNode(folder);
    cpSync(join(root, "scripts", "gpu.sh"), join(folder, "gpu.sh"));
    packProduct(work, folder);
    run("tar", ["cf", file, "-C", work, "troupe-gpu"]);
    note(`${file}: ${(statSync(file).size / 2 ** 20).toFixed(1)} MiB (tar xf, then bash troupe-gpu/gpu.sh)`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
});

/**
 * Node without its symbols, compressed once for each version: that takes a minute.
 * @param {string} folder
 */
function packNode(folder) {
  const present = run(productNode(), ["-p", "process.execPath + ' ' + process.version"]).trim();
  const [path = "", version = ""] = present.split(" ");
  const kept = join(layout.build, `node-${version}.xz`);
  if (!existsSync(kept)) {
    const stripped = join(folder, "node");
    cpSync(path, stripped);
    run("strip", [stripped]);
    run("xz", ["-6", "-T0", stripped]);
    cpSync(`${stripped}.xz`, kept);
  }
  cpSync(kept, join(folder, "node.xz"));
}

/**
 * The sources, the packages that they and vitest load, and Gloo's headers.
 * @param {string} work
 * @param {string} folder
 */
function packProduct(work, folder) {
  const product = join(work, "product");
  const tracked = run("git", [
    "-C",
    root,
    "ls-files",
    "--cached",
    "--others",
    "--exclude-standard",
    "--",
    ...carried,
  ]);
  const files = tracked.split("\n").filter((name) => name !== "" && existsSync(join(root, name)));
  const packages = [...packagesOf(["vitest", ...Object.keys(manifest(root).dependencies ?? {})])];
  for (const name of [...files, ...packages.map((name) => join("node_modules", name))]) {
    const to = join(product, name);
    mkdirSync(dirname(to), { recursive: true });
    cpSync(join(root, name), to, { recursive: true, dereference: true, filter: (path) => !idle.test(path) });
  }
  const gloo = ["/usr/include/gloo", "/usr/local/include/gloo"].find((headers) => existsSync(headers));
  if (gloo === undefined)
    throw new SetupError({
      where: "gpu-bundle",
      expected: "Gloo's headers, which go along",
      got: "none",
      hint: "apt install libgloo-dev",
    });
  cpSync(gloo, join(product, "include", "gloo"), { recursive: true, dereference: true });
  run("tar", ["czf", join(folder, "product.tar.gz"), "-C", product, "."]);
}

/**
 * Packages and all that they ask for.
 * @param {readonly string[]} names
 * @returns {Set<string>}
 */
function packagesOf(names) {
  /** @type {Set<string>} */
  const found = new Set();
  const waiting = [...names];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    const folder = join(layout.packages, name);
    if (found.has(name) || name.startsWith("@types/") || !existsSync(folder)) continue;
    found.add(name);
    const { dependencies = {}, optionalDependencies = {}, peerDependencies = {} } = manifest(folder);
    const vital = name === "vitest" || name === "vite" ? {} : peerDependencies;
    waiting.push(...Object.keys({ ...dependencies, ...optionalDependencies, ...vital }));
  }
  return found;
}

/**
 * @param {string} folder
 * @returns {{ dependencies?: Record<string, string>, optionalDependencies?: Record<string, string>, peerDependencies?: Record<string, string> }}
 */
function manifest(folder) {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
}

/**
 * @param {string} program
 * @param {readonly string[]} args
 */
function run(program, args) {
  return execFileSync(program, args, { encoding: "utf8", maxBuffer: 2 ** 28 });
}
