import { spawn } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { layOut } from "../../scripts/package/native-package.mjs";
import { npmPack, packWithAddons } from "../../scripts/package/pack.mjs";
import { addonIn, readBuildInfo, sourceHash, writeBuildInfo } from "../../scripts/setup/build-info.mjs";
import { lookAt } from "../../scripts/setup/libtorch-find.mjs";
import { wheelOfThisMachine } from "../../scripts/setup/wheels.mjs";
import { builtLibtorch, placeLibtorch } from "../fixtures/readable-libtorch.ts";
import { InstalledPackage, productionPackages } from "./installed.ts";
import { Registry } from "./registry.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const isRoot = process.getuid?.() === 0;
/** A user who owns nothing here. */
const nobody = 65_534;

/** The wheel that set-up would fetch, where this machine keeps one. */
export const keptWheel = (process.env.PIP_FIND_LINKS ?? "")
  .split(/\s+/)
  .map((folder) => join(folder, wheelOfThisMachine()?.file ?? "none"))
  .find((path) => existsSync(path));

/** How a command has ended. */
export interface Timed {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  readonly seconds: number;
  /** See {@link firstStepSeconds}. */
  readonly firstStepSeconds: number;
}

/**
 * A machine with Node and npm, without compiler, cmake and Python; a registry of Troupe's packages; and a user's project with the job
 * of examples/hello.
 */
export class BareMachine {
  readonly registry = new Registry();
  /** Names of the packages with addons. */
  readonly addons: string[] = [];
  /** The user's project and, above it, the user's home; both are new after {@link newUser}. */
  project = "";
  home = "";
  readonly #product = new InstalledPackage();
  /** The suite's own folder for temporary files is closed to other users. */
  readonly #open = mkdtempSync("/tmp/troupe-test-");
  /** Where programs are that each machine with Node has. */
  readonly #programs = join(this.#open, "bin");

  /** Publishes this tree's packages, and with them the addons of build/release if those are of these sources, else of this tree's own. */
  async prepare(): Promise<void> {
    await this.registry.listen();
    for (const path of productionPackages()) this.registry.publishFolder(join(root, path));
    const folder = join(this.#product.folder, "addons");
    mkdirSync(folder);
    const released = releasedAddons();
    const packages = released.length > 0 ? released : [placeAddon(folder)];
    for (const path of packages) {
      const { name, filename } = await npmPack(path, folder);
      this.addons.push(name);
      this.registry.publish(readFileSync(join(folder, filename)));
    }
    const optional = Object.fromEntries(this.addons.map((name) => [name, "0.1.0"]));
    const troupe = await packWithAddons(await this.#product.pack(), folder, optional);
    this.registry.publish(readFileSync(join(folder, troupe.filename)));
    mkdirSync(this.#programs);
    cpSync(process.execPath, join(this.#programs, "node"));
    for (const tool of ["npm", "npx"]) {
      const script = realpathSync(which(tool));
      const text = `#!/bin/sh\nexec node "${script}" "$@"\n`;
      writeFileSync(join(this.#programs, tool), text, { mode: 0o755 });
    }
    symlinkSync("/bin/sh", join(this.#programs, "sh"));
    chmodSync(this.#open, 0o755);
  }

  newUser(): void {
    this.home = mkdtempSync(join(this.#open, "home-"));
    this.project = join(this.home, "project");
    mkdirSync(this.project);
    writeFileSync(join(this.project, "package.json"), '{ "private": true, "type": "module" }\n');
    for (const file of ["examples/hello/job.ts", "README.md"])
      cpSync(join(root, file), join(this.project, file.split("/").at(-1) as string));
    this.#giveToUser(this.home);
  }

  removeUser(): void {
    rmSync(this.home, { recursive: true, force: true });
  }

  /** Runs a command line in the project, as a user who is not root, with nothing of this process's environment. */
  run([program = "", ...args]: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Timed> {
    const startMs = Date.now();
    const child = spawn(program, args, {
      cwd: this.project,
      env: {
        PATH: this.#programs,
        HOME: this.home,
        npm_config_registry: this.registry.url,
        NO_PROXY: "127.0.0.1",
        ...env,
      },
      stdio: ["ignore", "pipe", "pipe"],
      ...(isRoot ? { uid: nobody, gid: nobody } : {}),
    });
    const ended = { out: "", err: "" };
    child.stdout.on("data", (text) => (ended.out += text));
    child.stderr.on("data", (text) => (ended.err += text));
    return new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code) => {
        const seconds = (Date.now() - startMs) / 1_000;
        resolve({
          ...ended,
          code: code ?? -1,
          seconds,
          firstStepSeconds: firstStepSeconds(ended.out, startMs),
        });
      });
    });
  }

  /** Makes a virtual environment with torch in it; returns its folder. */
  placePython(): string {
    const site = join(this.home, "venv", "lib", "python3.11", "site-packages");
    const torch = join(site, "torch");
    const { libraries } = builtLibtorch as NonNullable<typeof builtLibtorch>;
    mkdirSync(torch, { recursive: true });
    placeLibtorch(join(torch, "lib"));
    for (const name of ["version.py", "share"])
      cpSync(join(dirname(libraries), name), join(torch, name), { recursive: true });
    return join(this.home, "venv");
  }

  remove(): void {
    this.registry.close();
    this.#product.remove();
    rmSync(this.#open, { recursive: true });
  }

  #giveToUser(folder: string): void {
    if (!isRoot) return;
    for (const path of ["", ...readdirSync(folder, { recursive: true, encoding: "utf8" })])
      chownSync(join(folder, path), nobody, nobody);
  }
}

/**
 * Returns the seconds from a run's start to the end of its first step; NaN if it made none.
 * @param out - its events
 * @param startMs - by the wall clock
 */
export function firstStepSeconds(out: string, startMs: number): number {
  const [, atMs] = /"kind":"step.finished",.*"timeMs":(\d+)/.exec(out) ?? [];
  return (Number(atMs) - startMs) / 1_000;
}

/** Returns the bytes of a folder's files, without those of libtorch beside an addon. */
export function bytesOf(folder: string): number {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => !path.includes("build/libtorch/"))
    .map((path) => lstatSync(join(folder, path)))
    .filter((stats) => stats.isFile())
    .reduce((sum, { size }) => sum + size, 0);
}

/** The folders of the packages that `npm run release` has made of the present sources. */
function releasedAddons(): string[] {
  const folder = join(root, "build", "release");
  if (!existsSync(folder)) return [];
  const hash = sourceHash({ headers: false });
  return readdirSync(folder)
    .map((name) => join(folder, name, "package"))
    .filter((path) => readBuildInfo(path)?.sourceHash === hash);
}

/** Lays out the package of this tree's addon, which is made to find libtorch by the link beside it. */
function placeAddon(folder: string): string {
  const built = join(root, "build");
  const info = readBuildInfo(built) as NonNullable<ReturnType<typeof readBuildInfo>>;
  const libtorch = lookAt("build", info.torch.configFolder).libtorch as NonNullable<typeof builtLibtorch>;
  const addon = readFileSync(addonIn(built));
  const begin = addon.indexOf(libtorch.libraries);
  if (begin === -1) throw new Error(`${addonIn(built)} does not name ${libtorch.libraries}`);
  const end = addon.indexOf("\0", begin);
  addon.fill(0, begin, end).write("$ORIGIN/libtorch", begin);
  writeFileSync(addonIn(folder), addon);
  writeBuildInfo(folder, info);
  const path = join(folder, "package");
  layOut(path, "0.1.0", folder, libtorch);
  return path;
}

function which(program: string): string {
  const found = (process.env.PATH ?? "")
    .split(delimiter)
    .filter((folder) => !folder.includes("node_modules"))
    .map((folder) => join(folder, program))
    .find((path) => existsSync(path));
  if (found === undefined) throw new Error(`no ${program}`);
  return found;
}
