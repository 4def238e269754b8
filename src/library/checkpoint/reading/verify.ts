import { TroupeError } from "../../../errors/index.ts";
import { tensorSizeBytes } from "../format/safetensors-header.ts";
import type { CheckpointStorage } from "../storage/storage.ts";
import { CHUNK_BYTES } from "../storage/summed-file.ts";
import { Checkpoint } from "./checkpoint.ts";

/** Something in a checkpoint that is not as it was saved. Plain data. */
export interface Damage {
  /** The file, or the folder where none could be named. */
  readonly path: string;
  /** The tensor that was read; left out for what is no tensor's. */
  readonly tensor?: string;
  /** Where in the file the damaged bytes begin, to a chunk; left out where that is not known. */
  readonly offsetBytes?: number;
  readonly message: string;
}

/** How {@link verifyCheckpoint} tells how far it is. */
export interface VerifyOptions {
  /** Called after each piece that was read. */
  readonly onProgress?: (readBytes: number) => void;
}

const pieceBytes = 16 * CHUNK_BYTES;

/**
 * Reads every byte of a checkpoint's tensors and compares it with what was saved.
 * @param name - its folder in the storage
 * @returns everything that is damaged, chunk by chunk; nothing where it is whole
 * @throws what the storage throws where it cannot be reached
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

/** What is damaged in a run of a tensor's bytes. Looks chunk by chunk only where something is. */
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
    for (let at = 0; at < into.length; at += CHUNK_BYTES) {
      damages.push(...(await damagesIn(checkpoint, tensor, begin + at, into.subarray(at, at + CHUNK_BYTES))));
    }
    return damages;
  }
}

/** A damaged chunk is met by each piece that has part of it: once for each tensor is enough. */
function distinct(damages: readonly Damage[]): Damage[] {
  const seen = new Set<string>();
  return damages.filter(({ path, tensor, offsetBytes }) => {
    const key = JSON.stringify([path, tensor, offsetBytes]);
    return !seen.has(key) && seen.add(key);
  });
}

/** @throws the error itself where it tells of no damage */
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
