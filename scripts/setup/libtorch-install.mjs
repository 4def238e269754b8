import { existsSync, renameSync, rmSync, statfsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { aptCommand, aptInstall, canApt } from "./apt.mjs";
import { capture } from "./child.mjs";
import { layout, productNode } from "./layout.mjs";
import { debianFolder, lookAt, ownVariable } from "./libtorch-find.mjs";
import { withLock } from "./lock.mjs";
import { makeOwnFolder } from "./ownership.mjs";
import { note, SetupError, step } from "./say.mjs";
import { wheelOfThisMachine, wheelsVariable } from "./wheels.mjs";

/** @typedef {import("./libtorch-find.mjs").Libtorch} Libtorch */

/** A program: it is to have the proxies and certificates of the environment, which Node reads when it starts. */
const fetcher = fileURLToPath(new URL("./fetch-libtorch.mjs", import.meta.url));

/** The wheel and what is unpacked of it. */
const neededBytes = 2 ** 30;

/** Debian's packages to build against where the wheel cannot be had. */
export const debianPackages = ["libtorch-dev"];

/**
 * Installs libtorch to build against: the CPU wheel into the user's cache, else Debian's own by apt.
 * @returns {Promise<Libtorch>}
 * @throws {SetupError} naming each way that was tried and the commands that fix it
 */
export async function installLibtorch() {
  const fetched = await fetchLibtorch("build");
  if (typeof fetched !== "string") return fetched;
  note(`no wheel of torch for the CPU:\n${fetched}`);
  const byApt = await installDebian();
  if (typeof byApt !== "string") return byApt;
  throw new SetupError(
    {
      where: "libtorch",
      expected: "a libtorch to build against",
      got: `none, nor as a wheel or by apt: ${byApt}`,
      hint: "one of these mends it",
    },
    mending(),
  );
}

/** The ways out where no libtorch could be had, a line each. */
export function mending() {
  const lines = [
    "pip install torch",
    aptCommand(debianPackages),
    `export ${ownVariable}=/path/to/libtorch`,
    `export ${wheelsVariable}=/folder/or/address/of/wheels`,
  ];
  return lines.map((line) => `  ${line}`).join("\n");
}

/**
 * Brings the wheel for this machine into the user's cache, where every clone and package finds it. Of several processes one
 * fetches it and the others wait.
 * @param {"run" | "build"} use - `build`: with the headers
 * @returns {Promise<Libtorch | string>} the libtorch, or why there is none
 */
export async function fetchLibtorch(use) {
  const wheel = wheelOfThisMachine();
  if (wheel === undefined) return `  there is none for ${process.platform}-${process.arch}`;
  const parent = dirname(layout.libtorch);
  const reason = makeOwnFolder(parent);
  if (reason !== undefined) return `  ${parent} is ${reason}`;
  return withLock(`${layout.libtorch}.lock`, async () => {
    const present = fetchedLibtorch();
    if (present !== undefined && (use === "run" || present.headers)) return present;
    const { bavail, bsize } = statfsSync(parent);
    if (bavail * bsize < neededBytes) return `  ${parent} has less than 1 GiB of free disk`;
    const cost = `a wheel of 190 MB, ${use === "run" ? "440" : "480"} MB on disk`;
    return step(`libtorch ${wheel.version}`, cost, async () => {
      const folder = `${layout.libtorch}.${process.pid}`;
      try {
        const args = [fetcher, folder, `${layout.libtorch}.part`, use];
        const { ok, stdout, tail } = await capture(productNode(), args, {
          env: networkOf(),
          stderr: "inherit",
        });
        if (!ok) return stdout || tail;
        return putInPlace(folder);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    });
  });
}

/** The libtorch that was fetched before, if any. */
function fetchedLibtorch() {
  return lookAt("cache", layout.libtorch).libtorch;
}

/** The environment of the fetching process: Node follows its proxies and certificates only if it is asked to. */
function networkOf() {
  const { env } = process;
  const certificates = env.NODE_EXTRA_CA_CERTS ?? env.SSL_CERT_FILE;
  return {
    ...env,
    NODE_USE_ENV_PROXY: "1",
    NODE_USE_SYSTEM_CA: "1",
    ...(certificates === undefined ? {} : { NODE_EXTRA_CA_CERTS: certificates }),
  };
}

/**
 * Gives what was unpacked its final name. A process that has the one before it loaded keeps its files.
 * @param {string} folder
 * @returns {Libtorch | string}
 */
function putInPlace(folder) {
  const { refused } = lookAt("wheel", folder);
  if (refused !== undefined) return `  the wheel is not what was expected: ${refused}`;
  const before = join(folder, "before");
  if (existsSync(layout.libtorch)) renameSync(layout.libtorch, before);
  renameSync(folder, layout.libtorch);
  rmSync(join(layout.libtorch, "before"), { recursive: true, force: true });
  return fetchedLibtorch() ?? "  the wheel lost its libtorch on the way";
}

/** @returns {Promise<Libtorch | string>} the libtorch, or why there is none */
export async function installDebian() {
  if (!canApt()) return "apt needs root";
  const { ok, tail } = await step(
    "libtorch of Debian",
    "apt install, 130 MB, 530 MB on disk, 30 s and the download",
    () => aptInstall(debianPackages),
  );
  if (!ok) return tail;
  return debianLibtorch() ?? `${debianPackages.join(" ")} brought no TorchConfig.cmake`;
}

/** Debian's own libtorch; undefined when it is not installed. */
export function debianLibtorch() {
  return lookAt("Debian", debianFolder()).libtorch;
}
