import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { atExit } from "./at-exit.ts";

/** Several times what a checkpoint of the tiny GPT takes, with the three that are kept. */
const DISK_BYTES = 4 << 20;

/** A small disk of its own, where this user may mount one; else a folder. */
export class SmallDisk implements Disposable {
  readonly folder: string;
  readonly isSmall: boolean;

  readonly #mounted: Disposable | undefined;

  private constructor(folder: string, isSmall: boolean) {
    this.folder = folder;
    this.isSmall = isSmall;
    if (isSmall) this.#mounted = atExit(() => this.#unmount());
  }

  static mount(folder: string): SmallDisk {
    mkdirSync(folder);
    try {
      const size = `size=${DISK_BYTES}`;
      execFileSync("mount", ["-t", "tmpfs", "-o", size, "tmpfs", folder], { stdio: "ignore" });
      return new SmallDisk(folder, true);
    } catch {
      return new SmallDisk(folder, false);
    }
  }

  /** Leaves no room. */
  fill(): void {
    try {
      for (;;) appendFileSync(this.#ballast, Buffer.alloc(4096));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    }
  }

  free(): void {
    rmSync(this.#ballast, { force: true });
  }

  [Symbol.dispose](): void {
    if (!this.isSmall) return;
    this.#mounted?.[Symbol.dispose]();
    this.#unmount();
  }

  #unmount(): void {
    execFileSync("umount", ["-l", this.folder]);
  }

  get #ballast(): string {
    return join(this.folder, "ballast");
  }
}
