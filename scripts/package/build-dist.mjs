import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { capture } from "../setup/child.mjs";
import { layout, productNode, root } from "../setup/layout.mjs";
import { SetupError, step } from "../setup/say.mjs";

/** A program: its bundler runs on a newer Node than set-up does. */
const joiner = fileURLToPath(new URL("./join-dist.mjs", import.meta.url));

/**
 * Makes `dist/` of `src/`: JavaScript joined into two modules, declarations, source maps, and the dashboard's page. Node runs
 * no TypeScript in node_modules, and nobody else's compiler is to check our sources.
 * @throws {SetupError} with what the compiler says
 */
export async function buildDist() {
  const dist = join(root, "dist");
  rmSync(dist, { recursive: true, force: true });
  await step("dist/", "tsc and rolldown, 8 s", async () => {
    const compiler = join(layout.packages, "typescript", "bin", "tsc");
    const { ok, tail } = await capture(productNode(), [compiler, "-p", join(root, "tsconfig.dist.json")]);
    if (!ok) throw new SetupError({ where: "dist", expected: "src/ to compile", got: "errors" }, tail);
    const { ok: isJoined, tail: said } = await capture(productNode(), [joiner]);
    if (!isJoined)
      throw new SetupError({ where: "dist", expected: "to join the modules of src/", got: "errors" }, said);
  });
  const page = join("job", "dashboard", "page");
  cpSync(join(root, "src", page), join(dist, page), {
    recursive: true,
    filter: (file) => !/\.(json|ts)$/.test(file), // what only its type check reads
  });
}
