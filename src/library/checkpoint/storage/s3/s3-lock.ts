import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as after } from "node:timers/promises";
import { hasEnded } from "../../../../runtime/process-mark.ts";
import { type S3Connection, s3Failure } from "../../../s3-client.ts";
import { holderNow, locked, parseHolder } from "../folder-lock.ts";
import { moved } from "../held-folder.ts";
import { maxTextBytes, type StorageHolder, type StorageLock } from "../storage.ts";
import { readTagged, removeKeys } from "./s3-keys.ts";

const lockKey = ".lock";
/** How often a holder rewrites its object to show that it lives. */
const RENEW_MS = 20_000;
/** After this long without a change an object has no living holder. */
const SILENT_MS = 60_000;
const LOOK_MS = 2_000;

/** An object as it was read; its tag changes with every write. */
interface Seen {
  readonly tag: string | undefined;
  readonly holder: StorageHolder | undefined;
}

/**
 * Locks a prefix of a bucket for one writer, by an object that is written only where none exists, or where it has not
 * changed since it was read, and rewritten while its holder lives. A holder on this machine is known at once to have
 * ended; one on another by its silence for a minute, without comparing clocks.
 */
export class S3Lock implements StorageLock {
  readonly hold: string;
  readonly #connection: S3Connection;
  readonly #what: string;
  readonly #renewal: NodeJS.Timeout;

  private constructor(connection: S3Connection, what: string, hold: string) {
    this.hold = hold;
    this.#connection = connection;
    this.#what = what;
    this.#renewal = setInterval(() => void this.#renew().catch(() => {}), RENEW_MS).unref();
  }

  /** Takes the lock. @throws {TroupeError} `CHECKPOINT_LOCKED` naming the holder; `S3_FAILED` */
  static async take(connection: S3Connection, location: string, what: string): Promise<S3Lock> {
    const hold = randomUUID();
    for (;;) {
      const seen = await read(connection);
      // A write may have been applied though its answer was lost.
      if (seen?.holder?.hold === hold) return new S3Lock(connection, what, hold);
      if (seen !== undefined && (await isHeld(connection, seen))) throw locked(location, seen.holder);
      if (await write(connection, what, hold, seen)) return new S3Lock(connection, what, hold);
    }
  }

  /** Checks that a lock is still held. @throws {TroupeError} `CHECKPOINT_MOVED` if it is not; `S3_FAILED` */
  static async ask(connection: S3Connection, location: string, hold: string): Promise<void> {
    const there = await read(connection);
    if (there?.holder?.hold === hold) return;
    throw moved(location, there === undefined ? "none of its lock there" : "another's lock there");
  }

  /** Returns the holder; one on another machine is returned until it unlocks, even if it may have ended. */
  static async holder(connection: S3Connection): Promise<StorageHolder | undefined> {
    const holder = (await read(connection))?.holder;
    const isHere = holder?.mark !== undefined && holder.host === hostname();
    return isHere && hasEnded(holder.mark) ? undefined : holder;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#renewal);
    const there = await read(this.#connection).catch(() => undefined);
    if (there?.holder?.hold !== this.hold) return;
    await removeKeys(this.#connection, [`${this.#connection.prefix}${lockKey}`]).catch(() => {});
  }

  /** Renews the lock. The next renewal makes up for a failed one, long before the lock expires. */
  async #renew(): Promise<void> {
    // The tag is read each time, as the answer with it may have been lost.
    const there = await read(this.#connection);
    if (there?.holder?.hold === this.hold) await write(this.#connection, this.#what, this.hold, there);
  }
}

async function isHeld(connection: S3Connection, seen: Seen): Promise<boolean> {
  const { holder } = seen;
  if (holder?.mark !== undefined && holder.host === hostname()) return !hasEnded(holder.mark);
  for (let waitedMs = 0; waitedMs < SILENT_MS; waitedMs += LOOK_MS) {
    await after(LOOK_MS);
    const now = await read(connection);
    if (now === undefined) return false;
    if (now.tag !== seen.tag) return true;
  }
  return false;
}

async function read(connection: S3Connection): Promise<Seen | undefined> {
  const there = await readTagged(connection, `${connection.prefix}${lockKey}`, maxTextBytes);
  return there && { tag: there.tag, holder: parseHolder(there.text ?? "") };
}

/** Writes the lock's object; false where another process was faster. */
async function write(
  { client, sdk, bucket, prefix }: S3Connection,
  what: string,
  hold: string,
  seen: Seen | undefined,
): Promise<boolean> {
  const key = `${prefix}${lockKey}`;
  // A random word makes each object, and so its tag, different.
  const body = `${JSON.stringify({ ...holderNow(what, hold), word: randomUUID() })}\n`;
  const condition = seen?.tag === undefined ? { IfNoneMatch: "*" } : { IfMatch: seen.tag };
  try {
    const put = new sdk.PutObjectCommand({ Bucket: bucket, Key: key, Body: body, ...condition });
    await client.send(put);
    return true;
  } catch (cause) {
    const status = (cause as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode;
    if (status === 412 || status === 409) return false;
    throw s3Failure("lock", `s3://${bucket}/${key}`, cause);
  }
}
