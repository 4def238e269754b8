// Asks a store of c10d one thing after the other, without a pause: a member of the groups of which a store is asked by many at once.
// Started by bench/scale.ts with the store's port and the key to read.
import { Store } from "../../src/compute/collectives/index.ts";

/** One round of questions. */
export interface Questions {
  /** How often to come and to leave. */
  readonly opens: number;
  /** How often to add to a number: one request each. */
  readonly adds: number;
  /** How often to read the key. */
  readonly reads: number;
}

const [port = "", key = ""] = process.argv.slice(2);
const place = { host: "127.0.0.1", port: Number(port), listens: false, timeoutMs: 60_000 };
const store = new Store(place);
process.on("message", ({ opens, adds, reads }: Questions) => {
  for (let opened = 0; opened < opens; opened++) new Store(place)[Symbol.dispose]();
  for (let asked = 0; asked < adds; asked++) store.add("number", 1);
  for (let asked = 0; asked < reads; asked++) store.read(key);
  process.send?.("done");
});
process.send?.("ready");
