// Trains the job beside this file on two ranks at ZeRO-3, with a sink and a subscriber that note the call stack that leads to them.
import { Runtime } from "troupe";

const { noteWalk } = globalThis as unknown as { readonly noteWalk: (what: string) => void };
const note = ({ kind }: { readonly kind: string }) => {
  if (kind === "step.finished") noteWalk("event");
};

await using runtime = await Runtime.spawn({ ranks: 2, zero: 3, sinks: [{ write: note, close() {} }] });
runtime.events$.subscribe(note);
await runtime.run(new URL("./job.ts", import.meta.url));
