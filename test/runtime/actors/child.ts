import { defineActor } from "../../../src/runtime/index.ts";

/** A child of a supervisor that reports its starts and stops, and ends as ordered. */
export type ChildProtocol = {
  fail: { in: string };
  finish: { in: null };
  incarnation: { in: null; out: number };
  note: { in: string };
};

export interface ChildInit {
  /** Start fails from this incarnation on. */
  readonly failStartFrom?: number;
  /** Fails as soon as it has started. */
  readonly diesAtOnce?: boolean;
  /** Start waits for this, on the main thread where a promise can be handed over. */
  readonly startsAfter?: Promise<unknown>;
  /** The stop hook never ends. */
  readonly neverStops?: boolean;
  /** The stop hook waits for this, on the main thread where a promise can be handed over. */
  readonly stopsAfter?: Promise<void>;
}

export default defineActor<ChildProtocol, ChildInit>({
  async start(context, init) {
    const { failStartFrom = Number.POSITIVE_INFINITY, diesAtOnce = false } = init;
    const { startsAfter, neverStops = false, stopsAfter } = init;
    if (context.incarnation >= failStartFrom) throw new Error(`${context.name} cannot start`);
    context.emit(`start ${context.name}#${context.incarnation}`);
    await startsAfter;
    if (diesAtOnce) context.self.tell("fail", `life ${context.incarnation} is over`);
    return {
      handlers: {
        fail(reason) {
          throw new Error(reason);
        },
        finish: () => context.stop(),
        incarnation: () => context.incarnation,
        note: (text) => context.emit(`${context.name}#${context.incarnation} ${text}`),
      },
      async stop() {
        context.emit(`stop ${context.name}#${context.incarnation}`);
        if (neverStops) await new Promise(() => {});
        if (stopsAfter === undefined) return;
        await stopsAfter;
        context.emit("too late");
      },
    };
  },
});
