import { constants, mkdirSync } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { native } from "../../compute/tensor/index.ts";

const POLL_MS = 50;
// In a shared cache, another user's link must not be followed.
const { O_APPEND, O_CREAT, O_NOFOLLOW, O_RDWR } = constants;

/**
 * The kernel's lock on a file, the same one that Python's `filelock` takes; it ends with its holder, however that ends.
 * On a file system without locks, every caller gets one.
 */
export class FileLock implements AsyncDisposable {
  readonly #file: FileHandle;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Waits for the lock. @param onWait - called once, if another process has it */
  static async take(path: string, onWait: () => void = () => {}): Promise<FileLock> {
    mkdirSync(dirname(path), { recursive: true });
    let isFirst = true;
    for (;;) {
      const file = await open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, 0o664);
      const isOurs = native().tryLock(file.fd) !== false;
      // Its last holder may have removed the file since it was opened: then the lock means nothing.
      if (isOurs && (await isAt(path, file))) return new FileLock(file);
      await file.close();
      if (isOurs) continue;
      if (isFirst) onWait();
      isFirst = false;
      await sleep(POLL_MS);
    }
  }

  /** Unlocks the file. The file stays, since removing it would race with others. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }
}

async function isAt(path: string, file: FileHandle): Promise<boolean> {
  const [own, there] = await Promise.all([file.stat(), stat(path).catch(() => undefined)]);
  return own.ino === there?.ino && own.dev === there.dev;
}
