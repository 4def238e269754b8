import type * as Sdk from "@aws-sdk/client-s3";
import { TroupeError } from "../errors/index.ts";

/** Amazon's client, which users install themselves. */
export type S3Sdk = typeof Sdk;

/** A bucket of an S3-compatible store, and a prefix of all keys in it. */
export interface S3Place {
  readonly bucket: string;
  /** Empty, or ending in a slash. */
  readonly prefix: string;
}

/** An open connection to a place. */
export interface S3Connection extends S3Place {
  readonly sdk: S3Sdk;
  readonly client: Sdk.S3Client;
}

/** How long a store may be silent during a request before it is repeated: the client itself would wait for ever. */
const SILENCE_MS = 30_000;
const CONNECT_MS = 10_000;

/** Whether a location is in S3, rather than a folder's path. */
export function isS3(location: string): boolean {
  return location.startsWith("s3://");
}

/**
 * Parses `s3://bucket/prefix`.
 * @throws {TroupeError} `CHECKPOINT_OPTION` for an address without a bucket, or with parts that have a meaning in paths
 */
export function parseS3(location: string): S3Place {
  const [, bucket, path = ""] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,62})(?:\/(.*))?$/.exec(location) ?? [];
  const prefix = path.replace(/\/+$/, "");
  const parts = prefix === "" ? [] : prefix.split("/");
  if (bucket !== undefined && parts.every((part) => part !== "" && part !== "." && part !== ".."))
    return { bucket, prefix: prefix === "" ? "" : `${prefix}/` };
  throw new TroupeError("CHECKPOINT_OPTION", {
    where: "s3",
    expected: "s3://BUCKET or s3://BUCKET/PREFIX",
    got: JSON.stringify(location),
    hint: "a bucket's name has lower-case letters, digits, dots and hyphens",
    fields: { location },
  });
}

/**
 * Loads Amazon's client, which finds credentials, region and another store's address in its usual places:
 * AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT_URL_S3, ~/.aws and others.
 * @param silenceMs - after which a request without an answer is repeated
 * @throws {TroupeError} `S3_UNAVAILABLE` where it is not installed
 */
export async function connectS3(place: S3Place, silenceMs = SILENCE_MS): Promise<S3Connection> {
  let sdk: S3Sdk;
  try {
    sdk = await import("@aws-sdk/client-s3");
  } catch (cause) {
    throw new TroupeError("S3_UNAVAILABLE", {
      where: "s3",
      expected: "the package @aws-sdk/client-s3",
      got: `"${(cause as Error).message}"`,
      hint: "npm install @aws-sdk/client-s3",
      cause,
    });
  }
  // Stores with an address of their own often have no host name for each bucket.
  const ownAddress = process.env.AWS_ENDPOINT_URL_S3 ?? process.env.AWS_ENDPOINT_URL;
  const client = new sdk.S3Client({
    region: process.env.AWS_REGION ?? process.env.AWS_DEFAULT_REGION ?? "us-east-1",
    forcePathStyle: ownAddress !== undefined,
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    requestHandler: { connectionTimeout: CONNECT_MS, socketTimeout: silenceMs },
  });
  return { ...place, sdk, client };
}

/**
 * Makes a request about an object, or about all keys with a prefix.
 * @param doing - for the error: "write"
 * @throws {TroupeError} `S3_FAILED`
 */
export async function request<T>(
  { client, sdk, bucket }: S3Connection,
  doing: string,
  key: string,
  send: (client: Sdk.S3Client, sdk: S3Sdk, object: { Bucket: string; Key: string }) => Promise<T>,
): Promise<T> {
  try {
    return await send(client, sdk, { Bucket: bucket, Key: key });
  } catch (cause) {
    throw s3Failure(doing, `s3://${bucket}/${key}`, cause);
  }
}

/** Whether an error means that an object does not exist. */
export function isAbsent(error: unknown): boolean {
  const { name, $metadata } = error as { name?: string; $metadata?: { httpStatusCode?: number } };
  return name === "NoSuchKey" || name === "NotFound" || $metadata?.httpStatusCode === 404;
}

/** The error for a failed request. */
export function s3Failure(what: string, location: string, cause: unknown): TroupeError {
  if (cause instanceof TroupeError) return cause;
  const { name, message } = cause as Error;
  return new TroupeError("S3_FAILED", {
    where: "s3",
    expected: `to ${what} ${location}`,
    got: `"${name}: ${message}"`,
    hint: "check that the bucket exists and the credentials allow access",
    fields: { location, cause: name },
    cause,
  });
}
