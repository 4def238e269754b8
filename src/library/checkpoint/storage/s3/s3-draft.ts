import { randomUUID } from "node:crypto";
import type { S3Connection } from "../../../s3-client.ts";
import type { FileSink, StorageDraft } from "../storage.ts";
import { listKeys, readWord, removeKeys } from "./s3-keys.ts";
import { putObject, S3Sink } from "./s3-sink.ts";

// Keys below the prefix:
//   step-000500/<draft>/model.safetensors …   the files of a folder, below the name of the draft that wrote them
//   step-000500/committed                     the draft that counts: writing this object is the commit
//   latest                                    the folder that was committed last

/** The object of a folder that names its committed draft. */
export const commitKey = "committed";
/** The object that names the folder committed last. */
export const latestKey = "latest";

/** Whether a name is a draft's. */
export function isDraftName(name: string): boolean {
  return /^[0-9a-f-]{36}$/.test(name);
}

/** A folder that is being uploaded. */
export class S3Draft implements StorageDraft {
  readonly #connection: S3Connection;
  readonly #name: string;
  readonly #ask: () => Promise<void>;
  readonly ticket: string;
  readonly #isJoined: boolean;
  readonly #replaced: string | undefined;
  readonly #sinks: S3Sink[] = [];
  #committed = false;
  /** Whether the commit was sent; it may count even where its answer was lost. */
  #isSent = false;

  /**
   * @param ask - checks that the place is still this writer's, before every change
   * @param replaced - the draft that is committed until this one is
   * @param joined - a draft that another process has begun, and commits
   */
  constructor(
    connection: S3Connection,
    name: string,
    ask: () => Promise<void>,
    replaced: string | undefined,
    joined?: string,
  ) {
    this.ticket = joined ?? randomUUID();
    this.#isJoined = joined !== undefined;
    this.#connection = connection;
    this.#name = name;
    this.#ask = ask;
    this.#replaced = replaced;
  }

  async create(name: string, chunkBytes?: number): Promise<FileSink> {
    await this.#ask();
    const sink = new S3Sink(this.#connection, `${this.#folder(this.ticket)}${name}`, chunkBytes);
    this.#sinks.push(sink);
    return sink;
  }

  async commit(): Promise<void> {
    await this.#ask();
    this.#committed = this.#isJoined;
    if (this.#isJoined) return;
    this.#isSent = true;
    await putObject(this.#connection, this.#commitKey, Buffer.from(`${this.ticket}\n`));
    this.#committed = true;
    await this.#ask();
    await putObject(
      this.#connection,
      `${this.#connection.prefix}${latestKey}`,
      Buffer.from(`${this.#name}\n`),
    );
    // If this fails, the next sweep removes it.
    if (this.#replaced !== undefined) await this.#remove(this.#replaced).catch(() => {});
  }

  async abandon(): Promise<void> {
    for (const sink of this.#sinks) await sink.abort();
    // A joined draft is removed by the process that began it.
    if (this.#committed || this.#isJoined) return;
    // If this fails, or the draft may be committed, the next sweep decides.
    await this.#removeOwn().catch(() => {});
  }

  async #removeOwn(): Promise<void> {
    if (this.#isSent && (await readWord(this.#connection, this.#commitKey)) === this.ticket) return;
    await this.#remove(this.ticket);
  }

  async #remove(draft: string): Promise<void> {
    await removeKeys(this.#connection, await listKeys(this.#connection, this.#folder(draft)));
  }

  get #commitKey(): string {
    return `${this.#connection.prefix}${this.#name}/${commitKey}`;
  }

  #folder(draft: string): string {
    return `${this.#connection.prefix}${this.#name}/${draft}/`;
  }
}
