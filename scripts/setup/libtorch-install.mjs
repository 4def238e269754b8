import { mkdirSync, readdirSync, renameSync, rmSync, statfsSync } from "node:fs";
import { dirname, join } from "node:path";
import { aptCommand, aptInstall, canApt } from "./apt.mjs";
import { ask, capture } from "./child.mjs";
import { layout } from "./layout.mjs";
import { debianFolder, lookAt, ownVariable, pythons } from "./libtorch-find.mjs";
import { makeOwnFolder } from "./ownership.mjs";
import { note, SetupError, step } from "./say.mjs";

/** @typedef {import("./libtorch-find.mjs").Libtorch} Libtorch */

const wheelVersion = "2.13.0";
/** PyTorch's own index of the wheels without CUDA (190 MB instead of 900 MB); asked when pip's usual places have none. */
const cpuWheelIndex = "https://download.pytorch.org/whl/cpu";
/** The wheel, what it unpacks to, and a temporary copy of it. */
const neededBytes = 2 * 2 ** 30;

/** Debian's packages to build against where pip cannot serve the wheel. */
export const debianPackages = ["libtorch-dev"];

/**
 * Installs libtorch: the CPU wheel by pip into the project's .libtorch, else Debian's own by apt.
 * @returns {Promise<Libtorch>}
 * @throws {SetupError} naming each way that was tried and the commands that fix it
 */
export async function installLibtorch() {
  const byPip = await installWheel();
  if (typeof byPip !== "string") return byPip;
  note(`pip cannot serve torch ${wheelVersion} for the CPU: ${byPip}`);
  const byApt = await installDebian();
  if (typeof byApt !== "string") return byApt;
  throw new SetupError(
    {
      where: "libtorch",
      expected: "a libtorch to build against",
      got: `none, nor by pip or apt: ${byApt}`,
      hint: "one of these mends it",
    },
    `  pip install torch\n  ${aptCommand(debianPackages)}\n  export ${ownVariable}=/path/to/libtorch`,
  );
}

/** @returns {Promise<Libtorch | string>} the libtorch, or why there is none */
async function installWheel() {
  const python = pythons().find((candidate) => ask(candidate, ["-m", "pip", "--version"]).ok);
  if (python === undefined) return "no Python with pip";
  const parent = dirname(layout.libtorch);
  const reason = makeOwnFolder(parent);
  if (reason !== undefined) return `${parent} is ${reason}`;
  const { bavail, bsize } = statfsSync(parent);
  if (bavail * bsize < neededBytes)
    return `${(neededBytes / 2 ** 30).toFixed(0)} GiB of free disk are needed`;
  return step(
    `libtorch ${wheelVersion}`,
    "pip install, 190 MB, 570 MB on disk, 20 s and the download",
    async () => {
      const folder = `${layout.libtorch}.${process.pid}`;
      try {
        return (await fetchWheel(python, folder)) ?? putInPlace(folder);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );
}

/**
 * Asks pip for the CPU build by its local version: PyPI's own wheel for Linux needs CUDA's libraries.
 * @param {string} python
 * @param {string} folder
 * @returns {Promise<string | undefined>} why there is no wheel; undefined when it is unpacked in `folder`
 */
async function fetchWheel(python, folder) {
  const temporary = join(folder, "tmp");
  mkdirSync(temporary, { recursive: true });
  const requirement = process.platform === "linux" ? `torch==${wheelVersion}+cpu` : `torch==${wheelVersion}`;
  const target = [
    "--no-deps",
    "--no-compile",
    "--only-binary=:all:",
    "--retries",
    "2",
    "--target",
    join(folder, "wheel"),
  ];
  // pip unpacks beside the target, so that putting it in place is a rename.
  const env = {
    ...process.env,
    TMPDIR: temporary,
    PIP_ROOT_USER_ACTION: "ignore",
    PIP_DISABLE_PIP_VERSION_CHECK: "1",
  };
  let reason = "";
  for (const source of wheelSources()) {
    const { ok, tail } = await capture(python, ["-m", "pip", "install", ...target, ...source, requirement], {
      env,
    });
    if (ok) return undefined;
    reason = tail.split("\n").findLast((line) => line.startsWith("ERROR:")) ?? tail;
  }
  return reason;
}

/**
 * Where pip looks, one after the other: its usual places, PyTorch's index, and there for a Python that has a wheel,
 * because only headers and libraries are used and they are the same for each.
 */
function wheelSources() {
  const index = ["--extra-index-url", cpuWheelIndex];
  if (process.platform !== "linux") return [[], index];
  const machine = process.arch === "arm64" ? "aarch64" : "x86_64";
  const otherPython = [
    "--python-version",
    "3.11",
    "--implementation",
    "cp",
    "--platform",
    `manylinux_2_28_${machine}`,
  ];
  return [[], index, [...index, ...otherPython]];
}

/**
 * Keeps the headers, the libraries, the cmake files and the license, and gives them their final name.
 * @param {string} folder
 * @returns {Libtorch | string}
 */
function putInPlace(folder) {
  const torch = join(folder, "wheel", "torch");
  for (const name of readdirSync(torch)) {
    if (!["include", "lib", "share", "version.py"].includes(name))
      rmSync(join(torch, name), { recursive: true });
  }
  const { refused } = lookAt("pip", torch);
  if (refused !== undefined) return `the wheel is not what was expected: ${refused}`;
  rmSync(layout.libtorch, { recursive: true, force: true });
  renameSync(join(folder, "wheel"), layout.libtorch);
  return lookAt(".libtorch", layout.libtorch).libtorch ?? "the wheel lost its libtorch on the way";
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
