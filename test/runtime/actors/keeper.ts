import { defineActor, SeenKeys } from "../../../src/runtime/index.ts";

/** Keeps parts that are handed over reliably, each once while it lives. */
export type KeeperProtocol = { keep: { in: { key: string; value: number }; out: string } };

export interface KeeperInit {
  /** Times each part was taken, over all incarnations. */
  readonly received: Int32Array;
  /** Leaves between taking this part and confirming it. */
  readonly diesAt?: number;
}

export default defineActor<KeeperProtocol, KeeperInit>({
  start(_context, { received, diesAt }) {
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
