import { TroupeError } from "../../../errors/index.ts";
import { connectS3, isAbsent, type S3Connection, s3Failure } from "../../s3-client.ts";
import { dataChanged } from "../noted-files.ts";
import type { RangedFile } from "./ranged-file.ts";

/** An object of an S3-compatible store; credentials, region and address are those of Amazon's client. */
export class S3Object implements RangedFile {
  readonly place: string;
  readonly sizeBytes: number;
  readonly mark: string;
  readonly #connection: S3Connection;
  readonly #key: string;
  readonly #etag: string | undefined;

  private constructor(
    connection: S3Connection,
    {
      key,
      sizeBytes,
      etag,
    }: { readonly key: string; readonly sizeBytes: number; readonly etag: string | undefined },
  ) {
    this.#connection = connection;
    this.#key = key;
    this.#etag = etag;
    this.place = `s3://${connection.bucket}/${key}`;
    this.sizeBytes = sizeBytes;
    this.mark = `${sizeBytes} ${etag}`;
  }

  /** @throws {TroupeError} `DATA_MISSING`, `S3_FAILED`, `S3_UNAVAILABLE` without Amazon's client */
  static async open(address: string): Promise<S3Object> {
    const { bucket, key } = placeOf(address);
    const connection = await connected(bucket);
    const { client, sdk } = connection;
    try {
      const head = await client.send(new sdk.HeadObjectCommand({ Bucket: bucket, Key: key }));
      return new S3Object(connection, { key, sizeBytes: head.ContentLength ?? 0, etag: head.ETag });
    } catch (cause) {
      if (isAbsent(cause)) throw missing(address, cause);
      throw s3Failure("find", address, cause);
    }
  }

  async read(begin: number, end: number): Promise<Buffer> {
    if (begin === end) return Buffer.alloc(0);
    const { client, sdk, bucket } = this.#connection;
    const range = { Bucket: bucket, Key: this.#key, Range: `bytes=${begin}-${end - 1}` };
    try {
      const found = await client.send(new sdk.GetObjectCommand(range));
      const bytes = (await found.Body?.transformToByteArray()) ?? new Uint8Array();
      if (found.ETag === this.#etag && bytes.length === end - begin)
        return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    } catch (cause) {
      if (!isAbsent(cause)) throw s3Failure("read", this.place, cause);
    }
    throw dataChanged(this.place, "another object, or none");
  }
}

/**
 * Lists the objects at an address: of a prefix that ends in a slash, or that match a pattern with `*`, sorted by key.
 * @returns addresses; the address itself where it is no prefix
 * @throws {TroupeError} errors of {@link S3Object.open}
 */
export async function s3Places(address: string): Promise<string[]> {
  const { bucket, key } = placeOf(address);
  if (!key.includes("*") && key !== "" && !key.endsWith("/")) return [address];
  const [prefix = ""] = key.split("*");
  const parts = key.split("*").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  // A star stands for characters of one name, as in a path's pattern.
  const pattern = key.includes("*") ? new RegExp(`^${parts.join("[^/]*")}$`) : undefined;
  const { client, sdk } = await connected(bucket);
  const keys: string[] = [];
  try {
    const pages = sdk.paginateListObjectsV2({ client }, { Bucket: bucket, Prefix: prefix });
    for await (const { Contents = [] } of pages) keys.push(...Contents.flatMap((object) => object.Key ?? []));
  } catch (cause) {
    throw s3Failure("list", address, cause);
  }
  const found = keys.filter((each) => !each.endsWith("/") && pattern?.test(each) !== false);
  return found.toSorted().map((each) => `s3://${bucket}/${each}`);
}

const connections = new Map<string, Promise<S3Connection>>();

function connected(bucket: string): Promise<S3Connection> {
  const known = connections.get(bucket) ?? connectS3({ bucket, prefix: "" });
  connections.set(bucket, known);
  known.catch(() => connections.delete(bucket));
  return known;
}

function placeOf(address: string): { readonly bucket: string; readonly key: string } {
  const [, bucket, key = ""] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,62})(?:\/(.*))?$/s.exec(address) ?? [];
  if (bucket !== undefined) return { bucket, key };
  throw new TroupeError("DATA_OPTION", {
    where: "data",
    expected: "s3://BUCKET/KEY",
    got: JSON.stringify(address),
    hint: "a bucket's name has lower-case letters, digits, dots and hyphens",
    fields: { address },
  });
}

function missing(address: string, cause: unknown): TroupeError {
  return new TroupeError("DATA_MISSING", {
    where: "data",
    expected: `an object at ${address}`,
    got: "none",
    fields: { address },
    cause,
  });
}
