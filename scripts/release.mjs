// node scripts/release.mjs [LIBTORCH ...]: makes every package of a release in build/release, and says how large they are.
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readArguments } from "./arguments.mjs";
import { buildNativePackage } from "./package/native-package.mjs";
import { npmPack, packWithAddons } from "./package/pack.mjs";
import { ensureGlooHeaders } from "./setup/gloo.mjs";
import { layout, root } from "./setup/layout.mjs";
import { lookAt, lookForLibtorch } from "./setup/libtorch-find.mjs";
import { installLibtorch } from "./setup/libtorch-install.mjs";
import { withLock } from "./setup/lock.mjs";
import { ensureTools } from "./setup/native.mjs";
import { ensureNpmPackages } from "./setup/npm-packages.mjs";
import { minorOf } from "./setup/prebuilt.mjs";
import { main, SetupError } from "./setup/say.mjs";

/** @typedef {import("./setup/libtorch-find.mjs").Libtorch} Libtorch */

const { positionals } = readArguments(
  `usage: npm run release [-- LIBTORCH ...]

Makes every package of a release in build/release: Troupe, and its addon for each LIBTORCH, a folder of one.
Without any: for each version that is found here, or else for the wheel`,
  {},
  16,
);
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
    for (const libtorch of await libtorches()) {
      const made = await buildNativePackage(libtorch, folder, version);
      if (typeof made === "string") {
        process.stderr.write(`torch ${libtorch.version} of ${libtorch.source} left out: ${made}\n`);
        continue;
      }
      optional[made.name] = version;
      rows.push(await npmPack(made.path, folder));
    }
    const { filename } = await npmPack(root, folder, []);
    rows.push(await packWithAddons(join(folder, filename), folder, optional));
    process.stdout.write(`${table(rows)}\n`);
  });
});

/** @returns {Promise<Libtorch[]>} one of each minor version, with CUDA and without */
async function libtorches() {
  const looks =
    positionals.length > 0 ? positionals.map((path) => lookAt(path, path)) : [...lookForLibtorch()];
  const refused = positionals.length > 0 ? looks.find((look) => look.refused !== undefined) : undefined;
  if (refused !== undefined)
    throw new SetupError({
      where: "release",
      expected: `a libtorch in ${refused.path}`,
      got: `${refused.refused}`,
    });
  const found = looks.flatMap(({ libtorch }) => (libtorch?.headers ? [libtorch] : []));
  if (found.length === 0) found.push(await installLibtorch());
  const firsts = new Map(found.toReversed().map((each) => [`${minorOf(each.version)} ${each.cuda}`, each]));
  return [...firsts.values()].toReversed();
}

/** @param {readonly import("./package/pack.mjs").Packed[]} rows */
function table(rows) {
  const width = Math.max(...rows.map(({ name }) => name.length));
  const megabytes = (/** @type {number} */ bytes) => `${(bytes / 1e6).toFixed(2)} MB`.padStart(9);
  const lines = rows.map(
    ({ name, size, unpackedSize, filename }) =>
      `${name.padEnd(width)} ${megabytes(size)} ${megabytes(unpackedSize)}  ${join(folder, filename)}`,
  );
  return [
    `${"package".padEnd(width)} ${"to fetch".padStart(9)} ${"on disk".padStart(9)}  file`,
    ...lines,
  ].join("\n");
}
