// node scripts/release.mjs [LIBTORCH ...]: makes every package of a release in build/release, and says how large they are.
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readArguments } from "./arguments.mjs";
import { buildNativePackage, kindOf } from "./package/native-package.mjs";
import { npmPack, packWithAddons } from "./package/pack.mjs";
import { ensureGlooHeaders } from "./setup/gloo.mjs";
import { layout, root } from "./setup/layout.mjs";
import { lookAt, lookForLibtorch } from "./setup/libtorch-find.mjs";
import { installLibtorch } from "./setup/libtorch-install.mjs";
import { withLock } from "./setup/lock.mjs";
import { ensureTools } from "./setup/native.mjs";
import { ensureNpmPackages } from "./setup/npm-packages.mjs";
import { main, SetupError } from "./setup/say.mjs";

/** @typedef {import("./setup/libtorch-find.mjs").Libtorch} Libtorch */

const { positionals } = readArguments(
  `usage: npm run release [-- LIBTORCH ...]

Makes every package of a release in build/release: Troupe, and its addon for each kind of libtorch that is here.
LIBTORCH: folders of some that would not be found`,
  {},
  16,
);
/** The kinds of libtorch that a release has addons for. */
const kinds = ["2.13", "2.13-cuda13", "2.14", "2.14-cuda13"];
const folder = join(layout.build, "release");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

await main(async () => {
  await withLock(layout.lock, async () => {
    await ensureNpmPackages();
    await ensureTools();
    await ensureGlooHeaders();
    mkdirSync(folder, { recursive: true });
    const rows = [];
    /** @type {Record<string, string>} */
    const optional = {};
    const found = await libtorches();
    for (const kind of new Set([...kinds, ...found.keys()])) {
      const libtorch = found.get(kind);
      const made =
        libtorch === undefined
          ? "no such libtorch is here"
          : await buildNativePackage(libtorch, folder, version);
      if (typeof made === "string") {
        process.stderr.write(`addon for torch ${kind} left out: ${made}\n`);
        continue;
      }
      const { name, path, glibc } = made;
      optional[name] = version;
      rows.push({ ...(await npmPack(path, folder)), glibc });
    }
    const { filename } = await npmPack(root, folder, []);
    rows.push(await packWithAddons(join(folder, filename), folder, optional));
    process.stdout.write(`${table(rows)}\n`);
  });
});

/** @returns {Promise<Map<string, Libtorch>>} the first of each kind; one with CUDA serves for the CPU where no other of its version is here */
async function libtorches() {
  const named = positionals.map((path) => lookAt(path, path));
  const refused = named.find((look) => look.refused !== undefined);
  if (refused !== undefined)
    throw new SetupError({
      where: "release",
      expected: `a libtorch in ${refused.path}`,
      got: `${refused.refused}`,
    });
  const others = [...lookForLibtorch()].filter(
    ({ libtorch }) => libtorch && kinds.includes(kindOf(libtorch)),
  );
  const found = [...named, ...others].flatMap(({ libtorch }) => (libtorch?.headers ? [libtorch] : []));
  if (found.length === 0) found.push(await installLibtorch());
  const { true: withCuda = [], false: plain = [] } = Object.groupBy(found, ({ cuda }) => `${cuda}`);
  const all = [...plain, ...withCuda.map((each) => ({ ...each, cuda: false })), ...withCuda];
  return new Map(all.toReversed().map((each) => [kindOf(each), each]));
}

/** @param {readonly (import("./package/pack.mjs").Packed & { glibc?: string })[]} rows */
function table(rows) {
  const width = Math.max(...rows.map(({ name }) => name.length));
  const megabytes = (/** @type {number} */ bytes) => `${(bytes / 1e6).toFixed(2)} MB`.padStart(9);
  const lines = rows.map(
    ({ name, size, unpackedSize, glibc = "", filename }) =>
      `${name.padEnd(width)} ${megabytes(size)} ${megabytes(unpackedSize)}  ${glibc.padEnd(5)}  ${join(folder, filename)}`,
  );
  return [
    `${"package".padEnd(width)} ${"to fetch".padStart(9)} ${"on disk".padStart(9)}  glibc  file`,
    ...lines,
  ].join("\n");
}
