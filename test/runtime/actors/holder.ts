import { type ActorRef, defineActor } from "../../../src/runtime/index.ts";
import type { ChildProtocol } from "./child.ts";

/** Keeps the first ref it is given and passes notes to it, whatever has become of it. */
export type HolderProtocol = { pass: { in: { to: ActorRef<ChildProtocol> | null; note: string } } };

export default defineActor<HolderProtocol>({
  start() {
    let held: ActorRef<ChildProtocol> | null = null;
    return {
      handlers: {
        pass({ to, note }) {
          held ??= to;
          held?.tell("note", note);
        },
      },
    };
  },
});
