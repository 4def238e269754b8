import { defineActor } from "../../../src/runtime/index.ts";

/** Never finishes starting. */
export default defineActor<Record<never, never>>({
  start(context) {
    context.emit("starting");
    return new Promise(() => {});
  },
});
