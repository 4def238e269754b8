import { existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { basename, delimiter, dirname, join } from "node:path";

/**
 * Where the Pythons of this machine keep torch, most deliberate first. Only files are looked at: asking a Python takes 50 ms, and
 * some are scripts that choose another.
 * @param {Record<string, string | undefined>} env
 * @returns {{ source: string, path: string | undefined }[]} path: the folder of torch; undefined where that Python has none
 */
export function pythons(env) {
  const homes = ["VIRTUAL_ENV", "CONDA_PREFIX"].flatMap((source) => {
    const home = env[source];
    return home ? [{ source, home }] : [];
  });
  const found = (env.PATH ?? "").split(delimiter).flatMap((folder) => {
    const program = ["python3", "python"].map((name) => join(folder, name)).find((path) => existsSync(path));
    return program === undefined ? [] : homesOf(program, env).map((home) => ({ source: program, home }));
  });
  const userHome = env.PYTHONUSERBASE || join(homedir(), ".local");
  const all = [
    ...homes,
    ...found,
    { source: "user site", home: userHome },
    { source: "/usr/bin/python3", home: "/usr" },
  ];
  const known = new Set();
  return all
    .filter(({ home }) => !known.has(home) && known.add(home))
    .map(({ source, home }) => ({ source, path: torchIn(home) }));
}

/**
 * The folders that a Python's own lie in: its virtual environment, else where it stands and where a link there leads.
 * @param {string} program
 * @param {Record<string, string | undefined>} env
 */
function homesOf(program, env) {
  const folder = realpathSync(dirname(program));
  const home = dirname(folder);
  if (existsSync(join(home, "pyvenv.cfg"))) return [home];
  // pyenv's, which run the version that is chosen.
  if (basename(folder) === "shims") {
    const file = join(home, "version");
    const chosen = env.PYENV_VERSION ?? (existsSync(file) ? readFileSync(file, "utf8") : "");
    return chosen
      .split(/[\s:]+/)
      .filter((version) => version !== "")
      .map((version) => join(home, "versions", version));
  }
  return [home, dirname(dirname(realpathSync(program)))];
}

/**
 * @param {string} home
 * @returns {string | undefined}
 */
function torchIn(home) {
  const library = join(home, "lib");
  if (!existsSync(library)) return undefined;
  return readdirSync(library)
    .filter((name) => /^python3/.test(name))
    .flatMap((name) => ["site-packages", "dist-packages"].map((below) => join(library, name, below, "torch")))
    .find((path) => existsSync(path));
}
