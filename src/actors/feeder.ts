import { moveRef } from "../compute/tensor/index.ts";
import { loadJob } from "../job/index.ts";
import { fileMarks, type Rows } from "../library/data/index.ts";
import { ActorDown, defineActor } from "../runtime/index.ts";
import { keptModules } from "../runtime/module-texts.ts";
import { Dealings } from "./dealings.ts";
import { FedData } from "./fed-data.ts";
import type * as protocol from "./protocols/index.ts";

export default defineActor<protocol.FeederProtocol, protocol.FeederInit>({
  // Batches that are decoded or fetched are made concurrently. A generation may begin while the one before still waits.
  concurrent: ["begin", "next"],
  async start(context, init) {
    const job = await loadJob(init.jobUrl);
    let data: Promise<FedData> | undefined;
    const open = (order = init.data) => {
      if (order === undefined) throw new Error("[feeder] expected an order to open its data: there was none");
      return FedData.open(job, order, init.begun);
    };
    const opened = (order?: protocol.DataOrder) => {
      data ??= open(order).catch((error: unknown) => {
        data = undefined;
        throw error;
      });
      return data;
    };
    const dealings = new Dealings(opened);
    return {
      handlers: {
        open: async ({ data: order }) => (await opened(order)).facts(),
        dryRun: async () => (await opened()).dryRun(),
        modules: keptModules,
        fingerprint: async () => ({ fingerprint: await (await opened()).fingerprint, files: fileMarks() }),
        begin({ generation, ranks }) {
          const dealing = dealings.of(generation);
          dealing.catch(() => {}); // thrown for those that ask
          for (const rank of ranks)
            context.watch(rank, (down) => {
              dealing.then(
                (each) => each.end(new ActorDown("next", down)),
                () => {},
              );
            });
        },
        put: async ({ generation, ...put }) => (await dealings.of(generation)).put(put),
        drop: async ({ generation, call }) => (await dealings.of(generation)).drop(call),
        next: async ({ generation, ...order }) => (await dealings.of(generation)).deal(order),
        async predicted({ generation, ...part }) {
          (await dealings.of(generation)).predicted(part);
          return {};
        },
        rows: async ({ generation, ...of }) => ({ rows: refsTo((await dealings.of(generation)).rows(of)) }),
        score: async ({ generation, ...evaluation }) => (await dealings.of(generation)).score(evaluation),
      },
    };
  },
});

/** Refs for the main thread, which never ends before the run. */
function refsTo(rows: Rows): protocol.RowRefs {
  return Object.fromEntries(Object.entries(rows).map(([name, tensor]) => [name, moveRef(tensor)]));
}
