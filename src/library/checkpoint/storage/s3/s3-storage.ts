import { TroupeError } from "../../../../errors/index.ts";
import { connectS3, parseS3, type S3Connection } from "../../../s3-client.ts";
import { stepOf } from "../../format/step-folder.ts";
import {
  type CheckpointStorage,
  maxTextBytes,
  type StorageDraft,
  type StorageHolder,
  type StorageLock,
  type StorageOptions,
  type StoredFolder,
  tooLong,
} from "../storage.ts";
import { commitKey, isDraftName, latestKey, S3Draft } from "./s3-draft.ts";
import { S3File } from "./s3-file.ts";
import { abortUploads, listFolders, listKeys, readTagged, readWord, removeKeys } from "./s3-keys.ts";
import { S3Lock } from "./s3-lock.ts";
import { putObject } from "./s3-sink.ts";

/**
 * Checkpoints in a bucket of an S3-compatible store. An object store has no rename and needs none: one object, written last,
 * commits a folder and names the draft whose objects count. Until then readers find no folder, or the one that it replaces.
 */
export class S3Storage implements CheckpointStorage {
  readonly location: string;
  readonly #connection: S3Connection;
  /** Token of the lock that covers its writes. */
  #hold: string | undefined;

  private constructor(location: string, connection: S3Connection, hold: string | undefined) {
    this.location = location.replace(/\/+$/, "");
    this.#connection = connection;
    this.#hold = hold;
  }

  /**
   * Opens a storage.
   * @param location - `s3://BUCKET/PREFIX`
   * @throws {TroupeError} `CHECKPOINT_OPTION` for an invalid address, `S3_UNAVAILABLE` without Amazon's client
   */
  static async open(location: string, { hold }: StorageOptions = {}): Promise<S3Storage> {
    return new S3Storage(location, await connectS3(parseS3(location)), hold);
  }

  async list(): Promise<readonly string[]> {
    const names: string[] = [];
    for (const name of await listFolders(this.#connection, this.#connection.prefix)) {
      if ((await this.#committed(name)) !== undefined) names.push(name);
    }
    return names;
  }

  latest(): Promise<string | undefined> {
    return readWord(this.#connection, this.#connection.prefix + latestKey);
  }

  async begin(name: string): Promise<StorageDraft> {
    await this.ask();
    return new S3Draft(this.#connection, name, this.ask, await this.#committed(name));
  }

  async join(name: string, ticket: string): Promise<StorageDraft> {
    return new S3Draft(this.#connection, name, this.ask, undefined, ticket);
  }

  beside(name: string): Promise<StorageDraft> {
    return this.begin(name);
  }

  async open(name: string): Promise<StoredFolder> {
    const draft = await this.#committed(name);
    const key = this.#key(draft === undefined ? name : `${name}/${draft}`);
    return {
      name,
      path: `${this.location}/${name}`,
      openFile: async (file) => {
        if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(file))
          return S3File.open(this.#connection, `${key}/${file}`);
        throw new TroupeError("FILE_READ", {
          where: "s3",
          expected: "a plain file name",
          got: JSON.stringify(file),
          hint: "the folder is foreign",
        });
      },
    };
  }

  async remove(name: string): Promise<void> {
    await this.ask();
    // Hides all of it first: no reader finds half of it.
    await removeKeys(this.#connection, [this.#key(`${name}/${commitKey}`)]);
    await removeKeys(this.#connection, await listKeys(this.#connection, this.#key(`${name}/`)));
  }

  async sweep(): Promise<void> {
    await this.ask();
    const { prefix } = this.#connection;
    const parts = (key: string) => key.slice(prefix.length).split("/");
    // Another run, or anyone else, may have keys below the same prefix.
    const isDraft = (key: string) => {
      const [name = "", draft = ""] = parts(key);
      return stepOf(name) !== undefined && isDraftName(draft);
    };
    await abortUploads(this.#connection, isDraft);
    const drafts = (await listKeys(this.#connection, prefix)).filter(isDraft);
    for (const [name = "", keys = []] of Object.entries(
      Object.groupBy(drafts, (key) => parts(key)[0] ?? ""),
    )) {
      const committed = await this.#committed(name);
      const left = keys.filter((key) => parts(key)[1] !== committed);
      await removeKeys(this.#connection, left);
    }
  }

  async lock(what: string): Promise<StorageLock> {
    const lock = await S3Lock.take(this.#connection, this.location, what);
    this.#hold = lock.hold;
    return {
      hold: lock.hold,
      [Symbol.asyncDispose]: async () => {
        if (this.#hold === lock.hold) this.#hold = undefined;
        await lock[Symbol.asyncDispose]();
      },
    };
  }

  /** Checks that the lock, if there is one, is still this writer's. Called before every change. */
  readonly ask = async (): Promise<void> => {
    if (this.#hold !== undefined) await S3Lock.ask(this.#connection, this.location, this.#hold);
  };

  holder(): Promise<StorageHolder | undefined> {
    return S3Lock.holder(this.#connection);
  }

  async readText(name: string, maxBytes = maxTextBytes): Promise<string | undefined> {
    const text = (await readTagged(this.#connection, this.#key(name), maxBytes + 1))?.text;
    if (Buffer.byteLength(text ?? "") > maxBytes) throw tooLong(`${this.location}/${name}`, maxBytes);
    return text;
  }

  async writeText(name: string, text: string): Promise<void> {
    await this.ask();
    await putObject(this.#connection, this.#key(name), Buffer.from(text));
  }

  /** The committed draft of a folder; undefined where there is none. */
  async #committed(name: string): Promise<string | undefined> {
    const draft = await readWord(this.#connection, this.#key(`${name}/${commitKey}`));
    return draft !== undefined && isDraftName(draft) ? draft : undefined;
  }

  #key(path: string): string {
    return this.#connection.prefix + path;
  }
}
