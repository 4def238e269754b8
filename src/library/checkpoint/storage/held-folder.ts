import { closeSync, constants, existsSync, fstat, open } from "node:fs";
import { stat } from "node:fs/promises";
import { promisify } from "node:util";
import { TroupeError } from "../../../errors/index.ts";
import { holderAt, undefinedWhereAbsent } from "./folder-lock.ts";

/**
 * Linux lists a process's open files here: a path through a folder's descriptor leads into that folder, wherever it was moved.
 */
const descriptors = "/proc/self/fd";

const openFile = promisify(open);
const statOpen = promisify(fstat);

/** Closes the descriptors of folders that were dropped without {@link HeldFolder.close}, for instance when an actor fails. */
const dropped = new FinalizationRegistry<number>((descriptor) => closeSync(descriptor));

/**
 * A folder that a writer holds open. Every change goes through {@link write}, which first checks that this folder is still at its
 * path. Changes then go to the open folder itself, so another folder that replaces it meanwhile is never changed.
 */
export class HeldFolder {
  readonly #location: string;
  #descriptor: number;
  readonly #hold: string | undefined;

  private constructor(location: string, descriptor: number, hold: string | undefined) {
    this.#location = location;
    this.#descriptor = descriptor;
    this.#hold = hold;
    dropped.register(this, descriptor, this);
  }

  /**
   * Opens the folder at a path.
   * @param hold - token of its lock; without one, the folder that is there now is held
   * @throws {TroupeError} `CHECKPOINT_MOVED` if no folder is there, or it does not have that lock
   */
  static async open(location: string, hold?: string): Promise<HeldFolder> {
    const flags = constants.O_RDONLY | constants.O_DIRECTORY;
    const descriptor = await openFile(location, flags).catch(undefinedWhereAbsent);
    if (descriptor === undefined) throw moved(location, "none there");
    const held = new HeldFolder(location, descriptor, hold);
    try {
      await held.#root();
      return held;
    } catch (error) {
      held.close();
      throw error;
    }
  }

  /**
   * Changes something in the folder.
   * @param act - receives a path of the folder
   * @throws {TroupeError} `CHECKPOINT_MOVED` where another folder, or none, is at the path, or the lock is gone; errors of `act`
   */
  async write<T>(act: (root: string) => Promise<T>): Promise<T> {
    const root = await this.#root();
    try {
      return await act(root);
    } catch (error) {
      const reason = await this.#root().then(
        () => error,
        (movedAway: unknown) => movedAway,
      );
      throw named(reason instanceof TroupeError ? reason : error, root, this.#location);
    }
  }

  /** A path of the folder, wherever it was moved. */
  get path(): string {
    const open = `${descriptors}/${this.#descriptor}`;
    return existsSync(open) ? open : this.#location;
  }

  /** Closes the folder; idempotent. */
  close(): void {
    if (this.#descriptor < 0) return;
    dropped.unregister(this);
    closeSync(this.#descriptor);
    this.#descriptor = -1;
  }

  /** Returns {@link path} after checking that the folder is still at its place. */
  async #root(): Promise<string> {
    const own = await statOpen(this.#descriptor, { bigint: true });
    const there = await stat(this.#location, { bigint: true }).catch(undefinedWhereAbsent);
    if (there === undefined) throw moved(this.#location, "none there");
    if (own.ino !== there.ino || own.dev !== there.dev) throw moved(this.#location, "another in its place");
    const root = this.path;
    if (this.#hold !== undefined && (await holderAt(root))?.hold !== this.#hold)
      throw moved(this.#location, "one without this writer's lock");
    return root;
  }
}

/** The error of a writer that has lost its locked place. */
export function moved(location: string, got: string): TroupeError {
  return new TroupeError("CHECKPOINT_MOVED", {
    where: "checkpoint",
    expected: `${location} to be the folder that this writer has locked`,
    got,
    hint: "put it back where it was, or end this run: it does not write into another's folder",
    fields: { location },
  });
}

/** Replaces the path of a descriptor in an error by the folder's own. */
function named(error: unknown, root: string, location: string): unknown {
  if (!(error instanceof Error) || !error.message.includes(root)) return error;
  const plain = <T>(value: T) => (typeof value === "string" ? value.replaceAll(root, location) : value);
  const { fields = {} } = error as Partial<TroupeError>;
  return Object.assign(error, {
    message: plain(error.message),
    fields: Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, plain(value)])),
  });
}
