import { existsSync, readdirSync, readFileSync, statfsSync } from "node:fs";
import { availableParallelism, cpus, freemem, totalmem } from "node:os";
import { join } from "node:path";
import { aptCommand } from "./apt.mjs";
import { readBuildInfo } from "./build-info.mjs";
import { ask } from "./child.mjs";
import { glooHeadersFound, glooPackage } from "./gloo.mjs";
import { hasPackages, isClone, layout, nodeFloor, root } from "./layout.mjs";
import { lookForLibtorch, ownVariable } from "./libtorch-find.mjs";
import { isCurrent } from "./native.mjs";
import { chooseAddon } from "./prebuilt.mjs";
import { tools } from "./tools.mjs";

/**
 * One thing that Troupe needs or can use on this machine.
 * @typedef {object} Finding
 * @property {string} name
 * @property {"ok" | "looked" | "advice" | "lack"} state - `lack`: Troupe does not run without; `advice`: it runs, less well;
 *   `looked`: one of several places, with nothing of use
 * @property {string} found - what was found
 * @property {string} [mend] - the command that fixes it; present for each `advice` and `lack`
 */

const buildCommand = isClone ? "npm run build:native" : `node "${join(root, "scripts", "build-native.mjs")}"`;

/**
 * Looks at everything that set-up and training need, without changing or importing anything.
 * @returns {Finding[]}
 */
export function diagnose() {
  if (!hasPackages()) return [packages()];
  const choice = chooseAddon();
  const isMade = isCurrent(layout.build);
  return [
    node(),
    ...buildTools(choice.way === "compile" && !isMade),
    ...libtorch(choice.way),
    ...(choice.way === "compile" ? [gloo()] : []),
    addon(choice, isMade),
    processor(),
    graphicsCards(),
    sharedMemory(),
    openFiles(),
    language(),
    ...network(),
    disk(),
  ];
}

/**
 * Node 24 and all that the addon is built with come by them.
 * @returns {Finding}
 */
function packages() {
  const mend = isClone ? "npm ci, or npm start, which does all the set-up" : "npm install";
  return { name: "npm packages", state: "lack", found: "none", mend };
}

/** @returns {Finding} */
function node() {
  const brought = ask(layout.node, ["--version"]);
  const present = `${process.version} at ${process.execPath}`;
  if (brought.ok) return { name: "Node", state: "ok", found: `${brought.stdout.trim()} at ${layout.node}` };
  if (Number.parseInt(process.versions.node, 10) >= nodeFloor)
    return { name: "Node", state: "ok", found: present };
  return {
    name: "Node",
    state: "lack",
    found: `${present}, ${nodeFloor} or newer is needed`,
    mend: isClone ? "npm ci" : `npm install node@${nodeFloor}`,
  };
}

/**
 * Without them nothing can be compiled, which only some installations need.
 * @param {boolean} needed
 * @returns {Finding[]}
 */
function buildTools(needed) {
  return tools().map(({ program, debian, version, usable }) => {
    if (usable) return { name: program, state: "ok", found: version ?? program };
    const found = version === undefined ? "does not run" : `${version} is too old`;
    if (!needed) return { name: program, state: "looked", found: `${found}; nothing is to be compiled` };
    return { name: program, state: "lack", found, mend: aptCommand([debian]) };
  });
}

/**
 * Every place that was looked at, then the verdict.
 * @param {import("./prebuilt.mjs").Choice["way"]} way
 * @returns {Finding[]}
 */
function libtorch(way) {
  const looks = [...lookForLibtorch()];
  const findings = looks.map(({ source, path, libtorch: hit, refused }) => {
    const where = path === undefined ? source : `${source}: ${path}`;
    const kind = hit?.cuda ? "CUDA" : "CPU";
    return /** @type {Finding} */ ({
      name: "libtorch",
      state: hit === undefined ? "looked" : "ok",
      found: hit === undefined ? `${where}: no (${refused})` : `${where}: torch ${hit.version}, ${kind}`,
    });
  });
  if (looks.some((look) => look.libtorch !== undefined)) return findings;
  if (isCurrent(layout.build)) {
    const { version, configFolder } = readBuildInfo(layout.build)?.torch ?? {};
    return [
      ...findings,
      { name: "libtorch", state: "ok", found: `torch ${version}, of the addon: ${configFolder}` },
    ];
  }
  if (way === "fetch")
    return [...findings, { name: "libtorch", state: "ok", found: "none; the first use fetches its wheel" }];
  const mend = process.env[ownVariable] ? `unset ${ownVariable}` : `${buildCommand} (or: pip install torch)`;
  return [...findings, { name: "libtorch", state: "lack", found: "none that can be built against", mend }];
}

/** @returns {Finding} */
function gloo() {
  if (glooHeadersFound()) return { name: "Gloo headers", state: "ok", found: "found" };
  const found = "not found: built without Gloo, ranks of one machine only";
  return { name: "Gloo headers", state: "advice", found, mend: aptCommand([glooPackage]) };
}

/**
 * The addon, or how the first use will get it.
 * @param {import("./prebuilt.mjs").Choice} choice
 * @param {boolean} isMade
 * @returns {Finding}
 */
function addon({ way, prebuilt, why }, isMade) {
  const name = "addon";
  const info = readBuildInfo(layout.build);
  const origin = info?.package === undefined ? "" : `of ${info.package} with ${info.torch.configFolder}, `;
  const built = `${origin}torch ${info?.torch.version}, ${info?.compiler}, ${JSON.stringify(info?.addon)}`;
  if (isMade && info?.package !== undefined) return { name, state: "ok", found: `${built} (${why})` };
  if (isMade) return { name, state: "ok", found: `${built} (compiled here: ${why})` };
  if (way !== "compile")
    return { name, state: "ok", found: `the first use takes ${prebuilt?.name} (${why})` };
  const found = info === undefined ? "not built" : `out of date (built from ${built})`;
  return { name, state: "lack", found: `${found}; is to be compiled (${why})`, mend: buildCommand };
}

/** @returns {Finding} */
function processor() {
  const info = existsSync("/proc/cpuinfo") ? readFileSync("/proc/cpuinfo", "utf8") : "";
  const sets = ["avx2", "avx512f", "avx512_bf16", "amx_tile"].filter((flag) => info.includes(` ${flag} `));
  const memory = `${gib(freemem())} of ${gib(totalmem())} free`;
  const found = `${availableParallelism()} cores, ${cpus()[0]?.model ?? process.arch}, ${sets.join(" ")}, ${memory}`;
  return { name: "machine", state: "ok", found };
}

/** @returns {Finding} */
function graphicsCards() {
  const { ok, stdout } = ask("nvidia-smi", [
    "--query-gpu=name,memory.total,driver_version",
    "--format=csv,noheader",
  ]);
  return {
    name: "GPUs",
    state: "ok",
    found: ok ? stdout.trim().split("\n").join("; ") : "none: training on the CPU",
  };
}

/** @returns {Finding} */
function sharedMemory() {
  const name = "/dev/shm";
  if (!existsSync(name)) return { name, state: "ok", found: "not on this system" };
  const bytes = totalBytes(name);
  if (bytes >= 2 ** 30) return { name, state: "ok", found: gib(bytes) };
  return {
    name,
    state: "advice",
    found: gib(bytes),
    mend: "sudo mount -o remount,size=2G /dev/shm (docker: --shm-size=2g)",
  };
}

/** @returns {Finding} */
function openFiles() {
  const limit = ask("sh", ["-c", "ulimit -n"]).stdout.trim();
  const enough = limit === "unlimited" || Number(limit) >= 4096;
  if (enough) return { name: "open files", state: "ok", found: limit };
  return { name: "open files", state: "advice", found: `at most ${limit}`, mend: "ulimit -n 65536" };
}

/**
 * Troupe itself reads and writes UTF-8 whatever stands here; Python, shells and terminals beside it may not.
 * @returns {Finding}
 */
function language() {
  const name = "language";
  const said = process.env.LC_ALL || process.env.LC_CTYPE || process.env.LANG || "none";
  if (/utf-?8/i.test(said)) return { name, state: "ok", found: said };
  const found = `${said}: programs beside may take text for other characters`;
  return { name, state: "advice", found, mend: "export LC_ALL=C.UTF-8" };
}

/**
 * Several hosts with GPUs talk by NCCL, which takes InfiniBand where it sees some; where that does not carry, it fails.
 * @returns {Finding[]}
 */
function network() {
  if (!ask("nvidia-smi", ["--list-gpus"]).ok) return [];
  const name = "NCCL";
  const hasInfiniBand =
    existsSync("/sys/class/infiniband") && readdirSync("/sys/class/infiniband").length > 0;
  if (hasInfiniBand) return [{ name, state: "ok", found: "InfiniBand" }];
  if (process.env.NCCL_IB_DISABLE === "1")
    return [{ name, state: "ok", found: "sockets: NCCL_IB_DISABLE=1" }];
  const found = "no InfiniBand; between hosts NCCL may look for it in vain";
  return [{ name, state: "advice", found, mend: "export NCCL_IB_DISABLE=1" }];
}

/** @returns {Finding} */
function disk() {
  const { bavail, bsize } = statfsSync(root);
  const bytes = bavail * bsize;
  if (bytes >= 4 * 2 ** 30) return { name: "disk", state: "ok", found: `${gib(bytes)} free at ${root}` };
  return {
    name: "disk",
    state: "advice",
    found: `${gib(bytes)} free at ${root}`,
    mend: isClone ? "npm run clean, or make room" : "make room",
  };
}

/** @param {string} path */
function totalBytes(path) {
  const { blocks, bsize } = statfsSync(path);
  return blocks * bsize;
}

/** @param {number} bytes */
function gib(bytes) {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
