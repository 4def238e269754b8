import { isAbsent, request, type S3Connection, s3Failure } from "../../../s3-client.ts";

/** Lists the keys that begin with `prefix`. @throws {TroupeError} `S3_FAILED` */
export function listKeys(connection: S3Connection, prefix: string): Promise<string[]> {
  return request(connection, "list", prefix, async (client, sdk, { Bucket }) => {
    const keys: string[] = [];
    for await (const page of sdk.paginateListObjectsV2({ client }, { Bucket, Prefix: prefix })) {
      for (const { Key } of page.Contents ?? []) if (Key !== undefined) keys.push(Key);
    }
    return keys;
  });
}

/** Lists the parts of keys between `prefix` and the next slash. @throws {TroupeError} `S3_FAILED` */
export function listFolders(connection: S3Connection, prefix: string): Promise<string[]> {
  return request(connection, "list", prefix, async (client, sdk, { Bucket }) => {
    const folders: string[] = [];
    const query = { Bucket, Prefix: prefix, Delimiter: "/" };
    for await (const page of sdk.paginateListObjectsV2({ client }, query)) {
      for (const { Prefix = "" } of page.CommonPrefixes ?? []) folders.push(Prefix.slice(prefix.length, -1));
    }
    return folders.filter((name) => name !== "");
  });
}

/** Removes objects; missing ones are no error. @throws {TroupeError} `S3_FAILED` */
export async function removeKeys(connection: S3Connection, keys: readonly string[]): Promise<void> {
  const { client, sdk, bucket } = connection;
  for (let begin = 0; begin < keys.length; begin += 1000) {
    const objects = keys.slice(begin, begin + 1000).map((Key) => ({ Key }));
    const order = { Bucket: bucket, Delete: { Objects: objects, Quiet: true } };
    const { Errors } = await client.send(new sdk.DeleteObjectsCommand(order)).catch((cause: unknown) => {
      throw s3Failure("remove from", `s3://${bucket}`, cause);
    });
    // The request succeeds even where none of its keys may be removed.
    const [first] = Errors ?? [];
    if (first === undefined) continue;
    const { Key, Code = "Unknown", Message = "no reason" } = first;
    throw s3Failure("remove", `s3://${bucket}/${Key}`, { name: Code, message: Message });
  }
}

/** Reads a word from a small object; undefined where it does not exist. @throws {TroupeError} `S3_FAILED` */
export async function readWord(connection: S3Connection, key: string): Promise<string | undefined> {
  return (await readTagged(connection, key, 256))?.text?.trim() || undefined;
}

/**
 * Reads the beginning of an object as text, with its tag, which changes with every write; undefined where it does not exist.
 * @throws {TroupeError} `S3_FAILED`
 */
export function readTagged(
  connection: S3Connection,
  key: string,
  maxBytes: number,
): Promise<{ readonly text: string | undefined; readonly tag: string | undefined } | undefined> {
  return request(connection, "read", key, async (client, sdk, object) => {
    const get = new sdk.GetObjectCommand({ ...object, Range: `bytes=0-${maxBytes - 1}` });
    try {
      const { Body, ETag } = await client.send(get);
      return { text: await Body?.transformToString(), tag: ETag };
    } catch (cause) {
      if (isAbsent(cause)) return undefined;
      throw cause;
    }
  });
}

/**
 * Aborts unfinished multipart uploads below the prefix. A store that cannot list them has none, or a rule of its own for them.
 * @param isOurs - selects them by key
 * @throws {TroupeError} `S3_FAILED`
 */
export async function abortUploads(
  { client, sdk, bucket, prefix }: S3Connection,
  isOurs: (key: string) => boolean,
): Promise<void> {
  let after: { readonly KeyMarker: string; readonly UploadIdMarker: string | undefined } | undefined;
  do {
    const query = { Bucket: bucket, Prefix: prefix, ...after };
    const page = await client.send(new sdk.ListMultipartUploadsCommand(query)).catch((cause: Error) => {
      if (cause.name === "NotImplemented") return undefined;
      throw s3Failure("list the uploads of", `s3://${bucket}/${prefix}`, cause);
    });
    for (const { Key = "", UploadId } of page?.Uploads ?? []) {
      if (!isOurs(Key)) continue;
      const upload = { Bucket: bucket, Key, UploadId };
      await client.send(new sdk.AbortMultipartUploadCommand(upload)).catch(() => {});
    }
    const { IsTruncated, NextKeyMarker, NextUploadIdMarker } = page ?? {};
    after =
      IsTruncated === true && NextKeyMarker !== undefined
        ? { KeyMarker: NextKeyMarker, UploadIdMarker: NextUploadIdMarker }
        : undefined;
  } while (after !== undefined);
}
