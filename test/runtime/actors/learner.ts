import { appendFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { threadId } from "node:worker_threads";
import { defineActor } from "../../../src/runtime/index.ts";

/** Its module, imported as `learner.ts?FILE`, writes a line in that file: the process and the thread that have loaded it. */
export type LearnerProtocol = {
  /** Where it lives, as that line says. */
  where: { in: null; out: string };
  fail: { in: null };
};

const here = `${process.pid} ${threadId}`;
const { search } = new URL(import.meta.url);
if (search !== "") appendFileSync(fileURLToPath(`file://${search.slice(1)}`), `${here}\n`);

export default defineActor<LearnerProtocol>({
  start: () => ({
    handlers: {
      where: () => here,
      fail() {
        throw new Error("it was asked to");
      },
    },
  }),
});
