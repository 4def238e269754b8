import { defineActor } from "../../../src/runtime/index.ts";

/** Counts how many of its handlers are at work at once. */
export type GateProtocol = {
  pass: { in: null; out: number };
  passTogether: { in: null; out: number };
  most: { in: null; out: number };
};

export default defineActor<GateProtocol>({
  concurrent: ["passTogether"],
  start() {
    let numInside = 0;
    let most = 0;
    const pass = async (): Promise<number> => {
      numInside += 1;
      most = Math.max(most, numInside);
      for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
      numInside -= 1;
      return most;
    };
    return { handlers: { pass, passTogether: pass, most: () => most } };
  },
});
