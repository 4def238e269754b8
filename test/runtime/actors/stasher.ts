import { defineActor } from "../../../src/runtime/index.ts";

/** Works only once it is open. */
export type StasherProtocol = { work: { in: string; out: string }; open: { in: null } };

export default defineActor<StasherProtocol>({
  start(context) {
    const stash = context.stash(3);
    const done: string[] = [];
    let isOpen = false;
    return {
      handlers: {
        work(text) {
          if (!isOpen) stash.hold();
          else done.push(text);
          return done.join(" ");
        },
        open() {
          isOpen = true;
          stash.release();
        },
      },
    };
  },
});
