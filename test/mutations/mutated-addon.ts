import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** The first build compiles everything; later ones what a mistake was made in. */
const numJobs = availableParallelism();
const run = promisify(execFile);

/**
 * Builds the addon of a copy of the tree, in that copy, against the libtorch that the tree's own was built against.
 * @param tree - the copy's folder
 * @returns where the addon is
 * @throws {Error} when it does not compile
 */
export async function buildAddon(tree: string): Promise<string> {
  const { torch } = JSON.parse(readFileSync(join(tree, "build/build-info.json"), "utf8")) as {
    torch: { configFolder: string };
  };
  // As deep as the tree's own build folder, so that a compiler cache that knows paths by their steps knows these.
  const work = join(tree, "mutated/native");
  const settings = {
    CMAKE_BUILD_TYPE: "Release",
    Torch_DIR: torch.configFolder,
    NODE_API_INCLUDE: join(tree, "node_modules/node-api-headers/include"),
    NODE_ADDON_API_INCLUDE: join(tree, "node_modules/node-addon-api"),
  };
  const defines = Object.entries(settings).map(([name, value]) => `-D${name}=${value}`);
  await cmake(tree, ["-S", join(tree, "native"), "-B", work, ...defines]);
  await cmake(tree, ["--build", work, "--parallel", String(numJobs)]);
  return join(work, "troupe.node");
}

async function cmake(tree: string, args: readonly string[]): Promise<void> {
  // A compiler cache, where one is set, has what the tree's own build has compiled: only mistakes are compiled again.
  const env = { ...process.env, CCACHE_BASEDIR: tree, CCACHE_NOHASHDIR: "1" };
  try {
    await run("cmake", args, { env, maxBuffer: Number.POSITIVE_INFINITY });
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    throw new Error(`[mutate] expected native/ to compile, got ${(stdout + stderr).slice(-2000)}`, {
      cause: error,
    });
  }
}
