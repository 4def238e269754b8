import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeOwnedFolder, removeOwnedFolder } from "../../src/runtime/hosting/owned-folder.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The parts of the repository that are copied for the tests, and those that are only linked. */
const copied = [
  ...["src", "native", "test", "examples", "scripts", "bin", "docs", "bench"],
  ...["package.json", "tsconfig.json", "vitest.config.ts", "README.md", "CONTRIBUTING.md"],
];
const linked = ["node_modules", "build", ".libtorch"];

/** A copy of the tree in which mistakes are made; `using` removes it, the next copy what an ended run left. */
export class ScratchTree implements Disposable {
  readonly #folder = makeOwnedFolder(tmpdir(), "troupe-mutate-");
  readonly path = join(this.#folder, "tree");
  readonly #texts = new Map<string, string>();

  constructor() {
    for (const name of copied) cpSync(join(root, name), join(this.path, name), { recursive: true });
    for (const name of linked) symlinkSync(join(root, name), join(this.path, name));
    symlinkSync(join(root, "../shared"), join(this.#folder, "shared"));
  }

  /** @returns a file as it was when the copy was made, whatever is changed in the tree or in the copy meanwhile */
  read(file: string): string {
    const text = this.#texts.get(file) ?? readFileSync(join(this.path, file), "utf8");
    this.#texts.set(file, text);
    return text;
  }

  write(file: string, text: string): void {
    writeFileSync(join(this.path, file), text);
  }

  [Symbol.dispose](): void {
    removeOwnedFolder(this.#folder);
  }
}
