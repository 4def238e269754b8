import type { CompletedPart } from "@aws-sdk/client-s3";
import { bytesIn, scope, Tensor } from "../../../../compute/tensor/index.ts";
import { request, type S3Connection, s3Failure } from "../../../s3-client.ts";
import { type Bytes, sizeOf } from "../bytes.ts";
import type { FileSink, FileSums } from "../storage.ts";
import { CHUNK_BYTES, crc32c } from "../summed-file.ts";

/** S3 requires parts of at least 5 MiB, except the last one. */
const partBytes = 8 << 20;
/** S3 allows 10,000 parts: the part size doubles after every thousand. */
const numPartsOfSize = 1000;
const numAtOnce = 4;

/**
 * An object that is written sequentially in parallel parts, each with a checksum that the store verifies. Holds at most
 * {@link numAtOnce} + 1 parts in memory.
 */
export class S3Sink implements FileSink {
  readonly #connection: S3Connection;
  readonly #key: string;
  readonly #chunkBytes: number;
  readonly #sums: number[] = [];
  /** Checksum of the incomplete chunk. */
  #sum = 0;
  #sizeBytes = 0;
  #part = new Uint8Array(partBytes);
  #partFilled = 0;
  #uploadId: string | undefined;
  #numParts = 0;
  readonly #done: CompletedPart[] = [];
  readonly #underWay = new Set<Promise<void>>();
  #failure: unknown;
  #finished = false;

  constructor(connection: S3Connection, key: string, chunkBytes = CHUNK_BYTES) {
    this.#connection = connection;
    this.#key = key;
    this.#chunkBytes = chunkBytes;
  }

  async append(bytes: Bytes): Promise<void> {
    const sizeBytes = sizeOf(bytes);
    for (let begin = 0; begin < sizeBytes; begin += partBytes)
      await this.#take(portionOf(bytes, begin, Math.min(sizeBytes, begin + partBytes)));
  }

  async finish(): Promise<FileSums> {
    if (this.#sizeBytes % this.#chunkBytes > 0) this.#sums.push(this.#sum);
    if (this.#uploadId === undefined) await this.#putWhole();
    else await this.#complete(this.#uploadId);
    this.#finished = true;
    return { sizeBytes: this.#sizeBytes, chunkBytes: this.#chunkBytes, crc32c: Uint32Array.from(this.#sums) };
  }

  drop(): void {
    void this.abort();
  }

  /** Aborts an unfinished upload. Never throws: the next sweep removes what is left. */
  async abort(): Promise<void> {
    await Promise.allSettled(this.#underWay);
    if (this.#uploadId === undefined || this.#finished) return;
    const { client, sdk, bucket } = this.#connection;
    const upload = { Bucket: bucket, Key: this.#key, UploadId: this.#uploadId };
    await client.send(new sdk.AbortMultipartUploadCommand(upload)).catch(() => {});
  }

  async #take(bytes: Uint8Array): Promise<void> {
    this.#addToSums(bytes);
    let taken = 0;
    while (taken < bytes.length) {
      const length = Math.min(bytes.length - taken, this.#part.length - this.#partFilled);
      this.#part.set(bytes.subarray(taken, taken + length), this.#partFilled);
      this.#partFilled += length;
      taken += length;
      // The last bytes wait, since a small file needs no parts.
      if (this.#partFilled === this.#part.length && taken < bytes.length) await this.#sendPart();
    }
    if (this.#partFilled === this.#part.length) await this.#sendPart();
  }

  #addToSums(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      const within = this.#sizeBytes % this.#chunkBytes;
      const length = Math.min(bytes.length - at, this.#chunkBytes - within);
      this.#sum = crc32c(bytes.subarray(at, at + length), within === 0 ? 0 : this.#sum);
      this.#sizeBytes += length;
      at += length;
      if (this.#sizeBytes % this.#chunkBytes === 0) this.#sums.push(this.#sum);
    }
  }

  async #sendPart(): Promise<void> {
    this.#uploadId ??= await this.#begin();
    while (this.#underWay.size >= numAtOnce) await Promise.race(this.#underWay);
    if (this.#failure !== undefined) throw s3Failure("write", this.#path, this.#failure);
    this.#numParts += 1;
    const sending = this.#upload(
      this.#uploadId,
      this.#numParts,
      this.#part.subarray(0, this.#partFilled),
    ).catch((error: unknown) => {
      this.#failure ??= error;
    });
    const ended = sending.then(() => void this.#underWay.delete(ended));
    this.#underWay.add(ended);
    this.#part = new Uint8Array(partBytes * 2 ** Math.floor(this.#numParts / numPartsOfSize));
    this.#partFilled = 0;
  }

  async #upload(uploadId: string, partNumber: number, bytes: Uint8Array): Promise<void> {
    const { client, sdk, bucket } = this.#connection;
    const place = { Bucket: bucket, Key: this.#key, UploadId: uploadId, PartNumber: partNumber };
    const checksum = { ChecksumCRC32C: base64(crc32c(bytes)) };
    const { ETag } = await client.send(new sdk.UploadPartCommand({ ...place, Body: bytes, ...checksum }));
    this.#done.push({ PartNumber: partNumber, ...checksum, ...(ETag === undefined ? {} : { ETag }) });
  }

  async #begin(): Promise<string> {
    const { UploadId } = await request(this.#connection, "write", this.#key, (client, sdk, object) =>
      client.send(new sdk.CreateMultipartUploadCommand({ ...object, ChecksumAlgorithm: "CRC32C" })),
    );
    return UploadId as string;
  }

  async #complete(uploadId: string): Promise<void> {
    if (this.#partFilled > 0) await this.#sendPart();
    await Promise.all(this.#underWay);
    if (this.#failure !== undefined) throw s3Failure("write", this.#path, this.#failure);
    const parts = this.#done.toSorted((a, b) => (a.PartNumber ?? 0) - (b.PartNumber ?? 0));
    const upload = { UploadId: uploadId, MultipartUpload: { Parts: parts } };
    await request(this.#connection, "write", this.#key, (client, sdk, object) =>
      client.send(new sdk.CompleteMultipartUploadCommand({ ...object, ...upload })),
    );
  }

  async #putWhole(): Promise<void> {
    await putObject(this.#connection, this.#key, this.#part.subarray(0, this.#partFilled));
  }

  get #path(): string {
    return `s3://${this.#connection.bucket}/${this.#key}`;
  }
}

/** Writes a small object with a checksum that the store verifies. @throws {TroupeError} `S3_FAILED` */
export async function putObject(connection: S3Connection, key: string, bytes: Uint8Array): Promise<void> {
  const content = { Body: bytes, ChecksumCRC32C: base64(crc32c(bytes)) };
  await request(connection, "write", key, (client, sdk, object) =>
    client.send(new sdk.PutObjectCommand({ ...object, ...content })),
  );
}

/** Bytes `begin` to `end`; a copy if they are in a tensor. */
function portionOf(bytes: Bytes, begin: number, end: number): Uint8Array {
  if (bytes instanceof Uint8Array) return bytes.subarray(begin, end);
  const range = bytes instanceof Tensor ? { tensor: bytes, begin: 0 } : bytes;
  const itemBytes = sizeOf({ tensor: range.tensor, begin: 0, numel: 1 });
  const values = scope(() =>
    range.tensor
      .view([-1])
      .narrow(0, range.begin + begin / itemBytes, (end - begin) / itemBytes)
      .toTypedArray(),
  );
  return bytesIn(values);
}

/** Encodes a checksum for S3's headers. */
function base64(sum: number): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(sum);
  return bytes.toString("base64");
}
