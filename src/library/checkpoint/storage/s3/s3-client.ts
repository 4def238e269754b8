import type * as Sdk from "@aws-sdk/client-s3";
import { TroupeError } from "../../../../errors/index.ts";

/** Amazon's client, which is installed beside Troupe by whoever uses it. */
export type S3Sdk = typeof Sdk;

/** A bucket of an S3-compatible store, and what all keys in it begin with. */
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

/** How long a store may be silent within a request, which is then made again: the client itself would wait for ever. */
const SILENCE_MS = 30_000;
const CONNECT_MS = 10_000;

/** Whether a location is one of S3, and not a folder's path. */
export function isS3(location: string): boolean {
  return location.startsWith("s3://");
}

/**
 * The place that `s3://bucket/prefix` names.
 * @throws {TroupeError} `CHECKPOINT_OPTION` for an address without a bucket, or with parts that mean something to paths
 */
export function parseS3(location: string): S3Place {
  const [, bucket, path = ""] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,62})(?:\/(.*))?$/.exec(location) ?? [];
  const prefix = path.replace(/\/+$/, "");
  const parts = prefix === "" ? [] : prefix.split("/");
  if (bucket !== undefined && parts.every((part) => part !== "" && part !== "." && part !== "..")) {
    return { bucket, prefix: prefix === "" ? "" : `${prefix}/` };
  }
  throw new TroupeError(
    "CHECKPOINT_OPTION",
    {
      where: "s3",
      expected: "s3://BUCKET or s3://BUCKET/PREFIX",
      got: JSON.stringify(location),
      hint: "a bucket's name is of small letters, digits, dots and hyphens",
    },
    { fields: { location } },
  );
}

/**
 * Loads Amazon's client. Credentials, region and the address of another store than Amazon's are taken from where that client
 * takes them: AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT_URL_S3, ~/.aws and the like.
 * @param silenceMs - after which a request that hears nothing is made again
 * @throws {TroupeError} `S3_UNAVAILABLE` where it is not installed
 */
export async function connectS3(place: S3Place, silenceMs = SILENCE_MS): Promise<S3Connection> {
  let sdk: S3Sdk;
  try {
    sdk = await import("@aws-sdk/client-s3");
  } catch (cause) {
    throw new TroupeError(
      "S3_UNAVAILABLE",
      {
        where: "s3",
        expected: "the package @aws-sdk/client-s3",
        got: `"${(cause as Error).message}"`,
        hint: "npm install @aws-sdk/client-s3",
      },
      { cause },
    );
  }
  // A store with an address of its own is often reached without a name for each bucket.
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

/** Whether an error says that an object is not there. */
export function isAbsent(error: unknown): boolean {
  const { name, $metadata } = error as { name?: string; $metadata?: { httpStatusCode?: number } };
  return name === "NoSuchKey" || name === "NotFound" || $metadata?.httpStatusCode === 404;
}

/** An error of the store, or on the way there. */
export function s3Failure(what: string, location: string, cause: unknown): TroupeError {
  if (cause instanceof TroupeError) return cause;
  const { name, message } = cause as Error;
  return new TroupeError(
    "S3_FAILED",
    {
      where: "s3",
      expected: `to ${what} ${location}`,
      got: `"${name}: ${message}"`,
      hint: "see that the bucket exists, and the credentials may use it",
    },
    { fields: { location, cause: name }, cause },
  );
}
