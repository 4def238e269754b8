import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The project's root folder, absolute. */
export const root = fileURLToPath(new URL("../..", import.meta.url));

/** What set-up makes and git ignores, and the sources it makes it from: absolute paths. */
export const layout = {
  packages: join(root, "node_modules"),
  lockFile: join(root, "package-lock.json"),
  native: join(root, "native"),
  build: join(root, "build"),
  lock: join(root, "build", "lock"),
  libtorch: join(root, ".libtorch"),
  node: join(root, "node_modules", ".bin", "node"),
};

/** Major version of Node that the product needs. */
export const nodeFloor = 24;

/**
 * The Node that runs the product: the one npm brought, else the present one where it is new enough.
 * @throws {Error} when neither is there, which set-up rules out
 */
export function productNode() {
  if (existsSync(layout.node)) return layout.node;
  if (Number.parseInt(process.versions.node, 10) >= nodeFloor) return process.execPath;
  throw new Error(
    `[set-up] Node ${nodeFloor} or newer: this is ${process.version} and ${layout.node} is missing (npm ci)`,
  );
}
