import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { capture } from "../setup/child.mjs";
import { layout, productNode, root } from "../setup/layout.mjs";
import { SetupError, step } from "../setup/say.mjs";

/** The module of a thread or a process, named by where it stands. The compiler rewrites what is imported, but no URLs. */
const moduleUrl = /new URL\("(\.{1,2}\/[^"]+)\.ts", import\.meta\.url\)/g;

/**
 * Makes `dist/` of `src/`: JavaScript, declarations, source maps, and the dashboard's page. Node runs no TypeScript in
 * node_modules, and nobody else's compiler is to check our sources.
 * @throws {SetupError} with what the compiler says
 */
export async function buildDist() {
  const dist = join(root, "dist");
  rmSync(dist, { recursive: true, force: true });
  await step("dist/", "tsc, 5 s", async () => {
    const compiler = join(layout.packages, "typescript", "bin", "tsc");
    const { ok, tail } = await capture(productNode(), [compiler, "-p", join(root, "tsconfig.dist.json")]);
    if (!ok) throw new SetupError("[dist] src/ compiles: it does not (see below)", tail);
  });
  for (const file of readdirSync(dist, { recursive: true, encoding: "utf8" }))
    if (file.endsWith(".js")) nameModulesAsBuilt(join(dist, file));
  const page = join("dashboard", "page");
  cpSync(join(root, "src", page), join(dist, page), {
    recursive: true,
    filter: (file) => !/\.(json|ts)$/.test(file), // what only its type check reads
  });
}

/**
 * Both endings have two letters, so that the source map stays right.
 * @param {string} file
 */
function nameModulesAsBuilt(file) {
  const text = readFileSync(file, "utf8");
  const renamed = text.replace(moduleUrl, 'new URL("$1.js", import.meta.url)');
  if (renamed !== text) writeFileSync(file, renamed);
}
