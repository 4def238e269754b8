import { hostname } from "node:os";
import { MASTER } from "../../../compute/parallel/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import {
  type CheckpointStorage,
  entryOf,
  type StorageDraft,
  stepFolder,
  TensorFiles,
  type WrittenTensors,
  weightsStem,
} from "../../../library/checkpoint/index.ts";
import type { SentEntry, SliceOrder, WrittenShare } from "../../protocols/index.ts";
import { fromRun, type HeldBox, heldBoxes, valuesOf } from "./held-boxes.ts";
import type { PartCollection } from "./part-collection.ts";
import { bytesOf, plannedAs } from "./write-parts.ts";

const SUFFIX_LENGTH = 8;

/** Distinguishes files of one save in a folder of a host's own from those of another save of the same step. */
export function suffixOf(ticket: string): string {
  return ticket.slice(-SUFFIX_LENGTH);
}

/** Whether {@link writeShare} has left the file in a folder of a host's own. */
export function isShareFile(name: string): boolean {
  return /-rank-\d{5}-[0-9a-f]{8}(-\d{5}-of-\d{5})?\.safetensors$/.test(name);
}

/**
 * Writes one rank's part of a save, box by box as they arrive; durable when this resolves.
 * @throws {TroupeError} `CHECKPOINT_ABANDONED` if the parts stop coming; errors of writing
 */
export async function writeShare(
  storage: CheckpointStorage,
  rank: number,
  order: SliceOrder,
  collection: PartCollection,
): Promise<WrittenShare> {
  const draft = await draftOf(storage, order);
  try {
    const boxes = order.entries.flatMap((entry) =>
      heldBoxes(entry.held).map((box) => ({ entry, box, planned: plannedBox(entry, box, order) })),
    );
    const ofKind = (isMaster: boolean) =>
      boxes.flatMap(({ entry, planned }) => ((entry.kind === MASTER) === isMaster ? planned : []));
    const mark = `-rank-${String(rank).padStart(5, "0")}${order.isApart ? `-${suffixOf(order.ticket)}` : ""}`;
    const stems = [`${weightsStem(order)}${mark}`, `optimizer${mark}`] as const;
    const files = new TensorFiles({ weights: ofKind(true), optimizer: ofKind(false) }, stems);
    const byEntry = new Map(boxes.map((each) => [entryOf(each.planned), each]));
    for (const name of files.order) {
      const { entry, box } = byEntry.get(name) as (typeof boxes)[number];
      await writeBox({ files, draft, collection }, name, entry, box);
    }
    await collection.until(() => collection.numParts >= order.numParts);
    const written = await files.finish(draft);
    await draft.commit();
    const { progress, blockedMs } = collection;
    return { ...(order.isApart ? keptHere(written) : written), progress, blockedMs };
  } catch (error) {
    await draft.abandon();
    throw error;
  }
}

async function draftOf(
  storage: CheckpointStorage,
  { step, ticket, isApart }: SliceOrder,
): Promise<StorageDraft> {
  const name = stepFolder(step);
  const draft = isApart ? await storage.beside(name) : await storage.join(name, ticket);
  if (draft !== undefined) return draft;
  throw new TroupeError("CHECKPOINT_DIRECTORY", {
    where: "checkpoint",
    expected: `the folder at ${storage.location} to be that of host 0`,
    got: "another",
    hint: "was it taken away, or mounted again?",
  });
}

async function writeBox(
  to: { readonly files: TensorFiles; readonly draft: StorageDraft; readonly collection: PartCollection },
  name: string,
  entry: SentEntry,
  box: HeldBox,
): Promise<void> {
  const { kind, parameter, held } = entry;
  const run = entry.dtype === undefined ? fromRun(box, held) : held;
  const { image } = to.collection;
  await to.collection.until(() => image.holds(kind, parameter, run));
  using values = image.run(kind, parameter, run);
  if (values === undefined) return;
  if (entry.dtype !== undefined) {
    await to.files.write(name, bytesOf(entry, values), to.draft);
    return;
  }
  using own = valuesOf(box, values);
  await to.files.write(name, own, to.draft);
}

function plannedBox(entry: SentEntry, box: HeldBox, { adapter }: SliceOrder) {
  const planned = plannedAs(entry, adapter?.names ?? {});
  if (entry.dtype !== undefined) return planned;
  return { ...planned, shape: box.shape, part: { of: entry.shape, offset: box.offset } };
}

function keptHere({ files, tensors }: WrittenTensors): WrittenTensors {
  const host = hostname();
  return { files: new Map([...files].map(([name, sums]) => [name, { ...sums, host }])), tensors };
}
