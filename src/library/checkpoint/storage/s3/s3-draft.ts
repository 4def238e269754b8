import { randomUUID } from "node:crypto";
import type { FileSink, StorageDraft } from "../storage.ts";
import type { S3Connection } from "./s3-client.ts";
import { listKeys, removeKeys } from "./s3-keys.ts";
import { putObject, S3Sink } from "./s3-sink.ts";

// Keys below the prefix:
//   step-000500/<draft>/model.safetensors …   the files of a folder, below the name of the draft that wrote them
//   step-000500/committed                     the draft that counts: writing this object is the commit
//   latest                                    the folder that was committed last

/** The object of a folder that names the draft that counts. */
export const commitKey = "committed";
/** The object that names the folder that was committed last. */
export const latestKey = "latest";

/** Whether a name is one of a draft's. */
export function isDraftName(name: string): boolean {
  return /^[0-9a-f-]{36}$/.test(name);
}

/** A folder that is being uploaded. */
export class S3Draft implements StorageDraft {
  readonly #connection: S3Connection;
  readonly #name: string;
  readonly #ask: () => Promise<void>;
  readonly #draft: string;
  readonly #isJoined: boolean;
  readonly #replaced: string | undefined;
  readonly #sinks: S3Sink[] = [];
  #committed = false;

  /**
   * @param ask - makes sure that the place is still this writer's, before anything in it changes
   * @param replaced - the draft that counts until this one does
   * @param joined - one that another process has begun, and commits
   */
  constructor(
    connection: S3Connection,
    name: string,
    ask: () => Promise<void>,
    replaced: string | undefined,
    joined?: string,
  ) {
    this.#draft = joined ?? randomUUID();
    this.#isJoined = joined !== undefined;
    this.#connection = connection;
    this.#name = name;
    this.#ask = ask;
    this.#replaced = replaced;
  }

  async create(name: string, chunkBytes?: number): Promise<FileSink> {
    await this.#ask();
    const sink = new S3Sink(this.#connection, `${this.#folder(this.#draft)}${name}`, chunkBytes);
    this.#sinks.push(sink);
    return sink;
  }

  get ticket(): string {
    return this.#draft;
  }

  async commit(): Promise<void> {
    await this.#ask();
    this.#committed = this.#isJoined;
    if (this.#isJoined) return;
    const { prefix } = this.#connection;
    await putObject(this.#connection, `${prefix}${this.#name}/${commitKey}`, Buffer.from(`${this.#draft}\n`));
    this.#committed = true;
    await this.#ask();
    await putObject(this.#connection, `${prefix}${latestKey}`, Buffer.from(`${this.#name}\n`));
    // What this fails to remove, the next sweep does.
    if (this.#replaced !== undefined) await this.#remove(this.#replaced).catch(() => {});
  }

  async abandon(): Promise<void> {
    for (const sink of this.#sinks) await sink.abort();
    // Of one that was joined, who began it removes all.
    if (!this.#committed && !this.#isJoined) await this.#remove(this.#draft).catch(() => {});
  }

  async #remove(draft: string): Promise<void> {
    await removeKeys(this.#connection, await listKeys(this.#connection, this.#folder(draft)));
  }

  #folder(draft: string): string {
    return `${this.#connection.prefix}${this.#name}/${draft}/`;
  }
}
