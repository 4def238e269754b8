import { ask, capture } from "./child.mjs";

/** Whether Debian packages can be installed here without asking anybody: apt is there and this is root. */
export function canApt() {
  return process.getuid?.() === 0 && ask("apt-get", ["--version"]).ok;
}

/**
 * The command that installs Debian packages, for a person to type.
 * @param {string[]} packages
 */
export function aptCommand(packages) {
  return `sudo apt install ${packages.join(" ")}`;
}

/**
 * Installs Debian packages, refreshing the package lists when they do not know them (a fresh container has none).
 * @param {string[]} packages
 * @returns {Promise<import("./child.mjs").Outcome>}
 */
export async function aptInstall(packages) {
  const first = await aptGet(["install", ...packages]);
  if (first.ok) return first;
  const update = await aptGet(["update"]);
  return update.ok ? aptGet(["install", ...packages]) : update;
}

/** @param {string[]} args */
function aptGet(args) {
  const options = ["-y", "-q", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120"];
  return capture("apt-get", [...options, ...args], {
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  });
}
