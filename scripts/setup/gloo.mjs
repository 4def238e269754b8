import { existsSync } from "node:fs";
import { aptCommand, aptInstall, canApt } from "./apt.mjs";
import { note, step } from "./say.mjs";

/** Debian's package of Gloo's headers, which libtorch needs and does not bring. */
export const glooPackage = "libgloo-dev";

/** Whether Gloo's headers stand where a compiler finds them by itself. */
export function glooHeadersFound() {
  return ["/usr/include", "/usr/local/include"].some((folder) => existsSync(`${folder}/gloo/algorithm.h`));
}

/** Installs Gloo's headers where this can be done without asking; otherwise says how, and Troupe is built without. */
export async function ensureGlooHeaders() {
  if (glooHeadersFound()) return;
  if (!canApt()) {
    note(`no headers of Gloo: built without it, ranks of one machine only (${aptCommand([glooPackage])})`);
    return;
  }
  const { ok } = await step("Gloo headers", "apt install, 1 MB, 5 s", () => aptInstall([glooPackage]));
  if (!ok) note(`apt could not install ${glooPackage}: built without Gloo, ranks of one machine only`);
}
