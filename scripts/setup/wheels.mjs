import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * A wheel of torch for the CPU, of which set-up uses the libraries and headers. They are the same for every Python.
 * @typedef {object} Wheel
 * @property {string} version - of torch
 * @property {string} file - its name
 * @property {string} sha256
 * @property {number} [sizeBytes] - where it is known
 */

/** The variable that names a folder or an address where the wheel is, in place of PyTorch's own host. */
export const wheelsVariable = "TROUPE_WHEELS";

/** PyTorch's own host of the wheels without CUDA (190 MB instead of 900 MB). */
const publicHost = "https://download.pytorch.org/whl/cpu";

const version = "2.13.0";

/** @type {Record<string, Wheel>} by platform and architecture, as Node names them */
const wheels = {
  "linux-x64": {
    version,
    file: `torch-${version}+cpu-cp311-cp311-manylinux_2_28_x86_64.whl`,
    sha256: "6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b",
    sizeBytes: 191_794_682,
  },
  "linux-arm64": {
    version,
    file: `torch-${version}+cpu-cp311-cp311-manylinux_2_28_aarch64.whl`,
    sha256: "84453b69508ec79902f899c5ed9495acb9e2bbe9fda5f1d5d6f19e3c3842e1a7",
  },
  "darwin-arm64": {
    version,
    file: `torch-${version}-cp311-cp311-macosx_14_0_arm64.whl`,
    sha256: "e76f9bcecc52b8ff711239a2f7547d5353df95878ab232f0773c1d95928b92f8",
  },
};

/** The wheel for this machine; undefined where there is none. */
export function wheelOfThisMachine() {
  return wheels[`${process.platform}-${process.arch}`];
}

/**
 * Where to look for a wheel, one place after the other: only the one that {@link wheelsVariable} names, else the folders that
 * pip is to look into and PyTorch's host.
 * @param {Wheel} wheel
 * @param {Record<string, string | undefined>} [env]
 * @returns {string[]} paths and addresses of the file
 */
export function placesOf({ file }, env = process.env) {
  const named = env[wheelsVariable];
  if (named) return [placeIn(named, file)];
  const folders = findLinks(env)
    .split(/\s+/)
    .filter((entry) => /^(\/|file:)/.test(entry));
  const kept = folders.map((folder) => placeIn(folder, file)).filter((path) => existsSync(path));
  return [...kept, placeIn(publicHost, file)];
}

/**
 * The folders that pip is to look into, by its variable or its configuration.
 * @param {Record<string, string | undefined>} env
 */
function findLinks({
  PIP_FIND_LINKS: said,
  PIP_CONFIG_FILE: file,
  XDG_CONFIG_HOME: config,
  HOME: home = "",
}) {
  if (said !== undefined) return said;
  const own = config ?? join(home, ".config");
  const files = [
    "/etc/pip.conf",
    "/etc/xdg/pip/pip.conf",
    join(home, ".pip", "pip.conf"),
    join(own, "pip", "pip.conf"),
  ];
  return [...files, file ?? ""]
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true)
    .map((path) => /^find-links\s*[=:](.*(?:\n[ \t]+.*)*)/m.exec(readFileSync(path, "utf8"))?.[1] ?? "")
    .join(" ");
}

/**
 * @param {string} place - a folder or an address
 * @param {string} file
 */
function placeIn(place, file) {
  if (/^https?:/.test(place)) return `${place.replace(/\/$/, "")}/${encodeURIComponent(file)}`;
  return join(place.startsWith("file:") ? fileURLToPath(place) : place, file);
}
