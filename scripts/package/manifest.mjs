import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../setup/layout.mjs";

const manifest = join(root, "package.json");
const kept = join(root, "dist", "package.json.kept");

/** Has package.json name `dist/` where it names `src/`, until {@link nameSources}. `npm pack` can only pack what lies there. */
export function nameDist() {
  const text = readFileSync(manifest, "utf8");
  writeFileSync(kept, text);
  const { exports, imports, ...rest } = JSON.parse(text);
  const built = { ...rest, exports: asBuilt(exports), imports: asBuilt(imports) };
  writeFileSync(manifest, `${JSON.stringify(built, null, 2)}\n`);
}

/** Gives package.json back as it was; does nothing where it is so. */
export function nameSources() {
  if (existsSync(kept)) renameSync(kept, manifest);
}

/**
 * @param {Record<string, string>} entries - what is named, and the file behind it
 */
function asBuilt(entries) {
  return Object.fromEntries(
    Object.entries(entries).map(([name, path]) => {
      const [, module] = /^\.\/src\/(.*)\.ts$/.exec(path) ?? [];
      if (module === undefined) return [name, path];
      return [name, { types: `./dist/${module}.d.ts`, default: `./dist/${module}.js` }];
    }),
  );
}
