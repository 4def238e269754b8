import { constants, mkdirSync } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { native } from "../../compute/tensor/index.ts";

const POLL_MS = 50;
// Another user's link is not followed, where a cache is shared.
const { O_APPEND, O_CREAT, O_NOFOLLOW, O_RDWR } = constants;

/**
 * The kernel's lock on a file, the one that Python's `filelock` takes: gone with its holder, however that ends. Where the file
 * system knows no locks, everybody gets one.
 */
export class FileLock implements AsyncDisposable {
  readonly #file: FileHandle;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /**
   * Waits for its turn.
   * @param onWait - called once, where another has it
   */
  static async take(path: string, onWait: () => void = () => {}): Promise<FileLock> {
    mkdirSync(dirname(path), { recursive: true });
    let isFirst = true;
    for (;;) {
      const file = await open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, 0o664);
      const isOurs = native().tryLock(file.fd) !== false;
      // Its last holder may have removed the file since it was opened: then this is nobody's lock.
      if (isOurs && (await isAt(path, file))) return new FileLock(file);
      await file.close();
      if (isOurs) continue;
      if (isFirst) onWait();
      isFirst = false;
      await sleep(POLL_MS);
    }
  }

  /** Gives it back. The file stays: to remove it is a race that others may lose. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }
}

async function isAt(path: string, file: FileHandle): Promise<boolean> {
  const [own, there] = await Promise.all([file.stat(), stat(path).catch(() => undefined)]);
  return own.ino === there?.ino && own.dev === there.dev;
}
