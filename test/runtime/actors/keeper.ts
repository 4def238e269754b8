import { defineActor, SeenKeys } from "../../../src/runtime/index.ts";
import { mapWords } from "./shared-words.ts";

/** Keeps parts that are handed over reliably, each once while it lives. */
export type KeeperProtocol = { keep: { in: { key: string; value: number }; out: string } };

export interface KeeperInit {
  /** Shared words: times each part was taken, over all incarnations. */
  readonly receivedPath: string;
  /** Leaves between taking this part and confirming it. */
  readonly diesAt?: number;
}

export default defineActor<KeeperProtocol, KeeperInit>({
  start(_context, { receivedPath, diesAt }) {
    const received = mapWords(receivedPath);
    const seen = new SeenKeys(64);
    return {
      handlers: {
        keep({ key, value }) {
          if (value < 0) throw new RangeError("no such part");
          if (seen.admit(key)) Atomics.add(received, value, 1);
          if (value === diesAt) process.exit(1);
          return key;
        },
      },
    };
  },
});
