import { openStorage, readForOthers } from "../checkpoint/index.ts";
import type { SliceWriterInit, SliceWriterProtocol } from "../protocols/index.ts";
import { defineActor } from "../runtime/index.ts";
import { lowerPriority, PartCollection, tidyApart, writersMark, writeShare } from "../state/saving/index.ts";
import { releaseRef } from "../tensor/index.ts";

export default defineActor<SliceWriterProtocol, SliceWriterInit>({
  lanes: { part: "control", progress: "control" },
  concurrent: ["write", "readStored"],
  async start(_context, { rank, directory }) {
    lowerPriority();
    const storage = await openStorage(directory);
    let collection = new PartCollection(0, -1);
    const collectionOf = (generation: number, step: number) => {
      if (collection.generation !== generation || collection.step !== step) {
        collection.abandon();
        collection = new PartCollection(generation, step);
      }
      return collection;
    };
    return {
      handlers: {
        begin({ generation }) {
          collectionOf(generation, -1);
        },
        async sees({ mark }) {
          return { sees: (await storage.readText(writersMark)) === mark };
        },
        async write(order) {
          using mine = collectionOf(order.generation, order.step);
          const written = await writeShare(storage, rank, order, mine);
          if (collection === mine) collection = new PartCollection(order.generation, -1);
          return written;
        },
        part(part) {
          if (part.generation < collection.generation) for (const { ref } of part.state) releaseRef(ref);
          else collectionOf(part.generation, part.step).add(part);
        },
        progress({ generation, step, progress }) {
          if (generation >= collection.generation) collectionOf(generation, step).setProgress(progress);
        },
        tidy: (order) => tidyApart(directory, order),
        readStored: (asked) => readForOthers(asked),
      },
      stop() {
        collection.abandon();
      },
    };
  },
});
