import { IGNORE_INDEX, shiftLabels } from "../../compute/nn/index.ts";
import type { Tensor } from "../../compute/tensor/index.ts";
import { TroupeError } from "../../errors/index.ts";
import { type Chat, type ChatTokens, chatIn, exampleError } from "../../library/data/index.ts";
import { natsOf, scoreNats } from "./causal-lm.ts";
import { defineTask, outputsOf, taskDataset } from "./define-task.ts";
import { readSplits, recordFiles, recordsIn } from "./examples/files.ts";
import { packTexts } from "./pack-texts.ts";
import type { Examples, TaskData, WeighedTask } from "./task.ts";
import { TextRows } from "./text-rows.ts";

/** Chats, each in a row of its own, or all packed into one. */
export type ChatBatch = {
  /** int64 [rows, length]. */
  readonly inputIds: Tensor;
  /** Tokens of learned answers; −100 at all others. */
  readonly labels: Tensor;
  /** 0 at padding; undefined if packed. */
  readonly attentionMask?: Tensor;
  /** int64 [n + 1], start of each packed chat, and end of the last; undefined unless packed. */
  readonly segments?: Tensor;
};

/** The chats of a row: several if chats are packed, else one. */
type Sample = readonly ChatTokens[];

/**
 * Predicts the assistant's next token in chats. Score: perplexity over the tokens of answers.
 *
 * Files: `.jsonl`, `.parquet` or `.arrow`, see `chatIn`. Chats are written by the tokenizer's template and cut at `length`; those without an
 * answer in front of the cut are left out, and counted in the facts. With `isPacked`, a sample of `train` is as many chats as fit
 * into `length` tokens.
 */
export const chatLm: WeighedTask<Chat, ChatBatch> = defineTask({
  task: "causal_lm",
  name: "chat",
  read: readChats,

  dataset(examples, options) {
    const rows = new TextRows(options);
    const encoded = Object.entries(examples).map(
      ([split, chats]) => [split, encode(chats, split, options, rows)] as const,
    );
    const kept = encoded.map(
      ([split, chats]) => [split, chats.filter(({ learned }) => learned.includes(true))] as const,
    );
    const length = rows.longest(kept.flatMap(([, chats]) => chats));
    const samplesOf = (split: string, chats: readonly ChatTokens[]): readonly Sample[] =>
      rows.packingOf(split) === undefined
        ? chats.map((chat) => [chat])
        : packed(chats, options.length ?? length);
    const count = (test: (chat: ChatTokens) => boolean) =>
      encoded.reduce((sum, [, chats]) => sum + chats.filter(test).length, 0);
    return taskDataset<Sample, ChatBatch>(options, {
      splits: Object.fromEntries(
        kept.map(([split, chats]) => [split, samplesOf(split, chats)]),
      ) as Examples<Sample>,
      facts: { numChats: count(() => true), numLeftOut: count(({ learned }) => !learned.includes(true)) },
      texts: { rows, rowOf: ([chat]) => chat ?? { ids: [] } },
      collate: (samples, { split }): ChatBatch => {
        const chats = samples.flat();
        const labels = chats.map(({ ids, learned }) =>
          ids.map((id, place) => (learned[place] ? id : IGNORE_INDEX)),
        );
        const lists = chats.map(({ ids }) => ids);
        const packing = rows.packingOf(split);
        if (packing !== undefined) return packTexts(lists, { ...packing, labels });
        const present = lists.map((ids) => ids.map(() => 1));
        return {
          inputIds: rows.padTo(lists, split, length, rows.padding),
          labels: rows.padTo(labels, split, length, IGNORE_INDEX),
          attentionMask: rows.padTo(present, split, length, 0),
        };
      },
      countTokens: ({ segments, attentionMask }) =>
        segments?.select(0, -1).item() ?? (attentionMask as Tensor).sum().item(),
      score: (predicted) => scoreNats(predicted),
    });
  },

  weigh: ({ labels }) => shiftLabels(labels).ge(0).sum().item(),

  predict: (model, { labels, ...asked }) =>
    natsOf(outputsOf<"logits">(model, asked).logits, shiftLabels(labels)),
});

/** Reads the chats of all splits. @throws {TroupeError} `DATA_EXAMPLE` naming each bad record of a file */
function readChats(path: string): Promise<Examples<Chat>> {
  return readSplits(path, recordFiles(), async (file) => {
    const records = await recordsIn(file);
    return eachOf(records, (record, index) => chatIn(record, `${file}, example ${index + 1}`));
  });
}

function encode(
  chats: readonly Chat[],
  split: string,
  { chatTemplate, tokenizer, source }: TaskData,
  { mostTokens }: TextRows,
): ChatTokens[] {
  if (chatTemplate === undefined || tokenizer === undefined)
    throw new TroupeError("DATA_OPTION", {
      where: "tasks",
      expected: "a chat template for a task with chats",
      got: "none",
      hint: "chatTemplate: await ChatTemplate.load(folder)",
    });
  return eachOf(chats, (chat, index) => {
    const { ids, learned } = chatTemplate.encode(chat, tokenizer, `${source}, ${split} ${index + 1}`);
    return { ids: ids.slice(0, mostTokens), learned: learned.slice(0, mostTokens) };
  });
}

/** Maps all items. If some fail, it throws the first error, with the places of the others as its hint. */
function eachOf<T, R>(items: readonly T[], map: (item: T, index: number) => R): R[] {
  const mapped: R[] = [];
  const errors: TroupeError[] = [];
  for (const [index, item] of items.entries()) {
    try {
      mapped.push(map(item, index));
    } catch (error) {
      if (!(error instanceof TroupeError && error.code === "DATA_EXAMPLE")) throw error;
      errors.push(error);
    }
  }
  const [first, ...others] = errors;
  if (first === undefined) return mapped;
  if (others.length === 0) throw first;
  const named = others.slice(0, MOST_NAMED).map(({ fields }) => fields.place);
  const { place, expected, got } = first.fields as Readonly<Record<"place" | "expected" | "got", string>>;
  const rest = others.length > MOST_NAMED ? "; …" : "";
  throw exampleError(place, expected, got, `${others.length} more: ${named.join("; ")}${rest}`);
}

/** The most bad records that an error names besides the first. */
const MOST_NAMED = 20;

/**
 * Packs chats into samples of at most `length` tokens: the longest first, each where it leaves the least room ("best fit
 * decreasing").
 */
function packed(chats: readonly ChatTokens[], length: number): Sample[] {
  const samples: ChatTokens[][] = [];
  /** Room in samples, rising, and the samples that have it. */
  const rooms: { readonly room: number; readonly samples: ChatTokens[][] }[] = [];
  const placeOf = (room: number) => {
    let [low, high] = [0, rooms.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((rooms[middle]?.room ?? 0) < room) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  for (const chat of chats.toSorted((a, b) => b.ids.length - a.ids.length)) {
    const place = placeOf(chat.ids.length);
    const found = rooms[place];
    const sample = found?.samples.pop() ?? [];
    if (found === undefined) samples.push(sample);
    else if (found.samples.length === 0) rooms.splice(place, 1);
    sample.push(chat);
    const room = (found?.room ?? length) - chat.ids.length;
    const next = placeOf(room);
    if (rooms[next]?.room === room) rooms[next].samples.push(sample);
    else rooms.splice(next, 0, { room, samples: [sample] });
  }
  return samples;
}
