import { TroupeError } from "../../../errors/index.ts";
import { CheckpointDraft, type JsonValue, stepFolder } from "../../../library/checkpoint/index.ts";
import type { SaveOrder, SpreadSave, WrittenShare } from "../../protocols/index.ts";
import type { Writing } from "./write-parts.ts";

/**
 * Has each rank's writer write its share of a save, then commits all by one manifest.
 * @throws {TroupeError} `CHECKPOINT_SAVE_FAILED`; the first failed writer's error
 */
export async function writeShares(
  { storage, keep, report }: Writing,
  order: SaveOrder,
  { writers, shares, deadlineMs }: SpreadSave,
): Promise<{ path: string; sizeBytes: number; blockedMs: number }> {
  const { generation, texts, state } = order;
  const { step } = state;
  const plan = { step, ...texts, weights: [], optimizer: [] };
  await using draft = await CheckpointDraft.begin(storage, plan, {
    named: order.named,
    ...(keep && { keep }),
  });
  const { ticket } = draft;
  const { adapter } = texts;
  const asked = writers.map(({ ref, isApart }, rank) => {
    const { numParts, entries } = shares[rank] ?? { numParts: 0, entries: [] };
    return ref.ask(
      "write",
      { generation, step, adapter, ticket, isApart, numParts, entries },
      { deadlineMs },
    );
  });
  // None writes into the draft any more when it is given up.
  const settled = await Promise.allSettled(asked);
  const failed = settled.find((each) => each.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  const written = settled.flatMap((each) => (each.status === "fulfilled" ? each.value : []));
  const totalBytes = bytesIn(written);
  report({ kind: "checkpoint.progressed", step, writtenBytes: totalBytes, totalBytes });
  const optimizer = progressOf(written, step) as unknown as JsonValue;
  const { path, sizeBytes } = await draft.commit({ ...state, optimizer }, written);
  const apart = writers.filter(({ isApart }) => isApart);
  if (apart.length > 0) {
    const present = [...(await storage.list()), stepFolder(step)];
    for (const { ref } of apart) ref.tell("tidy", { present, step, ticket });
  }
  return { path, sizeBytes, blockedMs: Math.max(0, ...written.map(({ blockedMs }) => blockedMs)) };
}

function bytesIn(written: readonly WrittenShare[]): number {
  return written
    .flatMap(({ files }) => [...files.values()])
    .reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}

function progressOf(written: readonly WrittenShare[], step: number): WrittenShare["progress"] {
  const progress = written.find((share) => share.progress !== undefined)?.progress;
  if (progress !== undefined) return progress;
  throw new TroupeError("CHECKPOINT_INCOMPLETE", {
    where: "checkpoint",
    expected: `how far the optimizer is after step ${step}, from rank 0's shard`,
    got: "nothing",
  });
}
