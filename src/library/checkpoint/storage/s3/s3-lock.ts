import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as after } from "node:timers/promises";
import { hasEnded } from "../../../../runtime/process-mark.ts";
import { holderNow, locked, parseHolder } from "../folder-lock.ts";
import { moved } from "../held-folder.ts";
import type { StorageHolder, StorageLock } from "../storage.ts";
import { isAbsent, type S3Connection, s3Failure } from "./s3-client.ts";
import { removeKeys } from "./s3-keys.ts";

const lockKey = ".lock";
/** How often a holder writes its object anew, so that it can be seen to live. */
const RENEW_MS = 20_000;
/** An object that stays as it is for so long has no living holder. */
const SILENT_MS = 60_000;
const LOOK_MS = 2_000;

/** An object as it was read: its tag changes with every write. */
interface Seen {
  readonly tag: string | undefined;
  readonly holder: StorageHolder | undefined;
}

/**
 * A prefix of a bucket taken for one writer: an object that is written only where none is, or where it is still the one that was
 * seen, and written anew while its holder lives. A holder of this machine is known to have ended at once; one of another by its
 * silence, which takes a minute and no clock that two hosts share.
 */
export class S3Lock implements StorageLock {
  readonly hold: string;
  readonly #connection: S3Connection;
  readonly #what: string;
  readonly #renewal: NodeJS.Timeout;
  #tag: string | undefined;

  private constructor(connection: S3Connection, what: string, hold: string, tag: string | undefined) {
    this.hold = hold;
    this.#connection = connection;
    this.#what = what;
    this.#tag = tag;
    this.#renewal = setInterval(() => void this.#renew(), RENEW_MS).unref();
  }

  /** @throws {TroupeError} `CHECKPOINT_LOCKED` naming who has it; `S3_FAILED` */
  static async take(connection: S3Connection, location: string, what: string): Promise<S3Lock> {
    const hold = randomUUID();
    for (;;) {
      const seen = await read(connection);
      if (seen !== undefined && (await isHeld(connection, seen))) throw locked(location, seen.holder);
      const tag = await write(connection, what, hold, seen);
      if (tag !== "taken") return new S3Lock(connection, what, hold, tag);
    }
  }

  /** @throws {TroupeError} `CHECKPOINT_MOVED` where a lock is no longer there; `S3_FAILED` */
  static async ask(connection: S3Connection, location: string, hold: string): Promise<void> {
    const there = await read(connection);
    if (there?.holder?.hold === hold) return;
    throw moved(location, there === undefined ? "none of its lock there" : "another's lock there");
  }

  /** @returns who has it: of another machine whoever has not given it back, though it may have ended meanwhile */
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

  /** A renewal that fails is made up for by the next one, long before the silence is too long. */
  async #renew(): Promise<void> {
    const seen = { tag: this.#tag, holder: undefined };
    const tag = await write(this.#connection, this.#what, this.hold, seen).catch(() => undefined);
    if (tag !== undefined && tag !== "taken") this.#tag = tag;
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

async function read({ client, sdk, bucket, prefix }: S3Connection): Promise<Seen | undefined> {
  const key = `${prefix}${lockKey}`;
  try {
    const { Body, ETag } = await client.send(new sdk.GetObjectCommand({ Bucket: bucket, Key: key }));
    return { tag: ETag, holder: parseHolder((await Body?.transformToString()) ?? "") };
  } catch (cause) {
    if (isAbsent(cause)) return undefined;
    throw s3Failure("read", `s3://${bucket}/${key}`, cause);
  }
}

/** @returns the new object's tag; "taken" where another was faster */
async function write(
  { client, sdk, bucket, prefix }: S3Connection,
  what: string,
  hold: string,
  seen: Seen | undefined,
): Promise<string | undefined> {
  const key = `${prefix}${lockKey}`;
  // The word of its own makes each object, and so its tag, another.
  const body = `${JSON.stringify({ ...holderNow(what, hold), word: randomUUID() })}\n`;
  const condition = seen?.tag === undefined ? { IfNoneMatch: "*" } : { IfMatch: seen.tag };
  try {
    const put = new sdk.PutObjectCommand({ Bucket: bucket, Key: key, Body: body, ...condition });
    return (await client.send(put)).ETag;
  } catch (cause) {
    const status = (cause as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode;
    if (status === 412 || status === 409) return "taken";
    throw s3Failure("lock", `s3://${bucket}/${key}`, cause);
  }
}
