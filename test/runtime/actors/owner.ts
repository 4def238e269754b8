import { spawnSync } from "node:child_process";
import { type ActorRef, defineActor, type Placement } from "../../../src/runtime/index.ts";

/** Owns two actors of its own kind, down to a depth; an owner's name begins its children's. */
export type OwnerProtocol = {
  stopBelow: { in: string; out: null };
  failBelow: { in: string };
  failNow: { in: null };
  stopNow: { in: null };
  sleepBelow: { in: string };
  /** Waits in native code. */
  sleepNow: { in: null };
};

export interface OwnerInit {
  readonly depth: number;
  readonly placement: Placement;
  readonly watches?: boolean;
}

export default defineActor<OwnerProtocol, OwnerInit>({
  async start(context, { depth, placement, watches = false }) {
    const owned: ActorRef<OwnerProtocol>[] = [];
    for (const suffix of depth === 0 ? [] : ["0", "1"]) {
      const child = await context.spawn<OwnerProtocol, OwnerInit>({
        name: context.name + suffix,
        module: new URL(import.meta.url),
        placement,
        init: { depth: depth - 1, placement, watches },
      });
      if (watches) context.watch(child, ({ actor }) => context.emit(`${context.name} heard of ${actor}`));
      owned.push(child);
    }
    const towards = (name: string): ActorRef<OwnerProtocol> => {
      return owned.find((child) => name.startsWith(child.name)) as ActorRef<OwnerProtocol>;
    };
    return {
      handlers: {
        async stopBelow(name) {
          const child = towards(name);
          if (child.name === name) child.tell("stopNow", null);
          else await child.ask("stopBelow", name, { deadlineMs: 10_000 });
          return null;
        },
        failBelow(name) {
          const child = towards(name);
          if (child.name === name) child.tell("failNow", null);
          else child.tell("failBelow", name);
        },
        failNow() {
          throw new Error(`${context.name} fails`);
        },
        stopNow: () => context.stop(),
        sleepBelow: (name) => void towards(name).tell("sleepNow", null),
        sleepNow() {
          context.emit(`${context.name} sleeps`);
          context.flush();
          spawnSync("sleep", ["3"]);
        },
      },
    };
  },
});
