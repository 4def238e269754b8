import { openStorage, readForOthers } from "../library/checkpoint/index.ts";
import { defineActor } from "../runtime/index.ts";
import type { SliceWriterInit, SliceWriterProtocol } from "./protocols/index.ts";
import { lowerPriority, PartCollector, tidyApart, writersMark, writeShare } from "./state/saving/index.ts";
import { withParts } from "./with-parts.ts";

export default defineActor<SliceWriterProtocol, SliceWriterInit>({
  lanes: { part: "control", progress: "control" },
  concurrent: ["write", "readStored"],
  async start(_context, { rank, directory }) {
    lowerPriority();
    const storage = await openStorage(directory);
    const parts = new PartCollector();
    return {
      handlers: {
        begin: ({ generation }) => parts.begin(generation),
        async sees({ mark }) {
          return { sees: (await storage.readText(writersMark)) === mark };
        },
        write: (order) =>
          withParts(parts, order, (collection) => writeShare(storage, rank, order, collection)),
        part: (part) => parts.add(part),
        progress: (progress) => parts.setProgress(progress),
        tidy: (order) => tidyApart(storage, order),
        readStored: (asked) => readForOthers(asked),
      },
      stop: () => parts[Symbol.dispose](),
    };
  },
});
