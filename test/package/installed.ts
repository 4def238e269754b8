import { execFile } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const thisTree = fileURLToPath(new URL("../..", import.meta.url));
const execute = promisify(execFile);

/** How a program ended. */
export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/**
 * The package as `npm pack` makes it of a copy of a tree, installed by npm in a folder of its own; `remove` removes it.
 */
export class InstalledPackage {
  /** Everything of it. */
  readonly folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
  /** Its user's project. Paths of people have spaces in them. */
  readonly project = join(this.folder, "my project");
  /** The copy of the tree that is packed. */
  readonly tree = join(this.folder, "tree");
  /** Where npm has put it. */
  readonly home = join(this.project, "node_modules", "troupe");
  /** Every file of it, and how large it is to be fetched. */
  files: readonly string[] = [];
  sizeBytes = 0;
  readonly #root: string;

  /** @param root - of the tree */
  constructor(root = thisTree) {
    this.#root = root;
  }

  /** Without a registry: what the package depends on lies there already, as `npm ci` has brought it here. */
  async install(): Promise<void> {
    const archive = await this.pack();
    mkdirSync(this.project);
    writeFileSync(join(this.project, "package.json"), '{ "private": true, "type": "module" }\n');
    for (const path of productionPackages(this.#root))
      cpSync(join(this.#root, path), join(this.project, path), { recursive: true });
    const offline = ["--offline", "--ignore-scripts", "--cache", join(this.folder, "cache")];
    const { code, err } = await this.run("npm", ["install", ...offline, archive]);
    if (code !== 0) throw new Error(err);
  }

  /** Packs a copy of the tree; returns the path of the archive. */
  async pack(): Promise<string> {
    this.#copyTree();
    const { tree } = this;
    const { code, out, err } = await this.run("npm", ["pack", "--json"], { cwd: tree });
    if (code !== 0) throw new Error(err);
    const [{ filename, files, size }] = JSON.parse(out);
    this.files = (files as { path: string }[]).map(({ path }) => path);
    this.sizeBytes = size;
    return join(tree, filename);
  }

  /** Puts the addon of the tree where the package's first use would build it, which takes minutes. */
  placeAddon(): void {
    const addon = process.env.TROUPE_ADDON ?? join(this.#root, "build", "troupe.node");
    mkdirSync(join(this.home, "build"), { recursive: true });
    cpSync(addon, join(this.home, "build", "troupe.node"));
    const forks = join(dirname(addon), "fork-server.so");
    if (existsSync(forks)) cpSync(forks, join(this.home, "build", "fork-server.so"));
  }

  /** Runs a program in the project, or in a folder of it, with this Node as `node`. */
  async run(
    program: string,
    args: readonly string[],
    { cwd = this.project, env = {} }: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
  ): Promise<Ended> {
    const path = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`;
    const ownCache = { XDG_CACHE_HOME: join(this.folder, "xdg") };
    const ours = { TROUPE_ADDON: undefined, NODE_OPTIONS: undefined };
    const clean = { ...process.env, ...ownCache, ...ours, PATH: path, ...env };
    try {
      const { stdout, stderr } = await execute(program, [...args], { cwd, env: clean });
      return { code: 0, out: stdout, err: stderr };
    } catch (error) {
      const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
      return { code, out: stdout, err: stderr };
    }
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(join(this.project, path)), { recursive: true });
    writeFileSync(join(this.project, path), text);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  #copyTree(): void {
    const { tree } = this;
    const root = this.#root;
    mkdirSync(tree);
    const { files: packed } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const needed = [
      "package.json",
      "tsconfig.json",
      "tsconfig.dist.json",
      "README.md",
      "LICENSE",
      "src",
      "scripts",
    ];
    for (const path of new Set<string>([...needed, ...packed]))
      if (path !== "dist" && !path.startsWith("src/") && existsSync(join(root, path)))
        cpSync(join(root, path), join(tree, path), { recursive: true });
    symlinkSync(join(root, "node_modules"), join(tree, "node_modules"));
  }
}

/** The packages that `npm install` of this one installs, by their paths in node_modules. */
export function productionPackages(root = thisTree): string[] {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    packages: Readonly<Record<string, { dev?: boolean; devOptional?: boolean; peer?: boolean }>>;
  };
  return Object.entries(packages)
    .filter(([path, { dev, devOptional, peer }]) => path !== "" && !dev && !devOptional && !peer)
    .map(([path]) => path)
    .filter((path) => existsSync(join(root, path)));
}
