import { isS3 } from "../s3-client.ts";
import { LocalFolder } from "./storage/local-folder.ts";
import { S3Storage } from "./storage/s3/s3-storage.ts";
import type { CheckpointStorage, StorageOptions } from "./storage/storage.ts";

/**
 * Opens the storage at a location: `s3://BUCKET/PREFIX`, or the path of a folder.
 * @throws {TroupeError} `CHECKPOINT_OPTION` for an invalid address, `S3_UNAVAILABLE` without Amazon's client
 */
export async function openStorage(
  location: string,
  options: StorageOptions = {},
): Promise<CheckpointStorage> {
  return isS3(location) ? S3Storage.open(location, options) : new LocalFolder(location, options);
}
