import { TroupeError } from "../../../errors/index.ts";
import { tensorSizeBytes } from "../format/safetensors-header.ts";
import type { CheckpointStorage } from "../storage/storage.ts";
import { CHUNK_BYTES } from "../storage/summed-file.ts";
import { Checkpoint } from "./checkpoint.ts";

/** Damage to a checkpoint: data that is not as it was saved. Plain data. */
export interface Damage {
  /** The file, or the folder where the file is unknown. */
  readonly path: string;
  /** The tensor; left out for damage outside tensors. */
  readonly tensor?: string;
  /** Start of the damaged chunk in the file; left out where it is unknown. */
  readonly offsetBytes?: number;
  readonly message: string;
}

/** Options of {@link verifyCheckpoint}. */
export interface VerifyOptions {
  /** Called after each piece with the number of bytes read. */
  readonly onProgress?: (readBytes: number) => void;
}

const pieceBytes = 16 * CHUNK_BYTES;

/**
 * Reads every byte of a checkpoint's tensors and compares checksums.
 * @param name - its folder in the storage
 * @returns all damage, chunk by chunk; empty for an intact checkpoint
 * @throws the storage's error where it cannot be reached
 */
export async function verifyCheckpoint(
  storage: CheckpointStorage,
  name: string,
  { onProgress = () => {} }: VerifyOptions = {},
): Promise<Damage[]> {
  try {
    await using checkpoint = await Checkpoint.open(await storage.open(name));
    const damages: Damage[] = [];
    const buffer = new Uint8Array(pieceBytes);
    let readBytes = 0;
    for (const tensor of checkpoint.names) {
      const { dtype, shape } = checkpoint.entry(tensor);
      const sizeBytes = tensorSizeBytes(dtype, shape) as number;
      for (let begin = 0; begin < sizeBytes; begin += pieceBytes) {
        const piece = buffer.subarray(0, Math.min(pieceBytes, sizeBytes - begin));
        damages.push(...(await damagesIn(checkpoint, tensor, begin, piece)));
        readBytes += piece.length;
        onProgress(readBytes);
      }
    }
    return distinct(damages);
  } catch (error) {
    return [damageOf(error)];
  }
}

/** Finds damage in a run of a tensor's bytes; reads chunk by chunk only where there is some. */
async function damagesIn(
  checkpoint: Checkpoint,
  tensor: string,
  begin: number,
  into: Uint8Array,
): Promise<Damage[]> {
  try {
    await checkpoint.readRange(tensor, begin, into);
    return [];
  } catch (error) {
    if (into.length <= CHUNK_BYTES) return [{ ...damageOf(error), tensor }];
    const damages: Damage[] = [];
    for (let at = 0; at < into.length; at += CHUNK_BYTES)
      damages.push(...(await damagesIn(checkpoint, tensor, begin + at, into.subarray(at, at + CHUNK_BYTES))));
    return damages;
  }
}

/** Removes duplicates: each piece that overlaps a damaged chunk reports it, but once for each tensor is enough. */
function distinct(damages: readonly Damage[]): Damage[] {
  const seen = new Set<string>();
  return damages.filter(({ path, tensor, offsetBytes }) => {
    const key = JSON.stringify([path, tensor, offsetBytes]);
    return !seen.has(key) && seen.add(key);
  });
}

/** Converts an error to damage; throws it where it is another error. */
function damageOf(error: unknown): Damage {
  if (!(error instanceof TroupeError) || !damageCodes.has(error.code)) throw error;
  const { path, offsetBytes } = error.fields;
  return {
    path: String(path ?? ""),
    ...(offsetBytes === undefined ? {} : { offsetBytes: Number(offsetBytes) }),
    message: error.message,
  };
}

const damageCodes: ReadonlySet<string> = new Set([
  "CHECKPOINT_DAMAGED",
  "CHECKPOINT_ELSEWHERE",
  "JSON_INVALID",
  "SAFETENSORS_INVALID",
]);
