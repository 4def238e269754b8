// An actor that keeps something, sends itself messages, answers by a stream, and fails on demand.
import { defineActor } from "troupe/actors";

export type Clerk = {
  file: { in: { client: string; text: string } };
  tick: { in: null };
  /** The texts of a client, one by one. */
  read: { in: { client: string }; stream: string };
  count: { in: { client: string }; out: { texts: number; ticks: number; clerk: string } };
  fail: { in: { client: string; why: string } };
};

export default defineActor<Clerk, { ink: string }>({
  start(context, { ink }) {
    const texts = new Map<string, string[]>();
    let ticks = 0;
    context.every(10, "tick", null);
    return {
      handlers: {
        file({ client, text }) {
          texts.set(client, [...(texts.get(client) ?? []), `${text}, in ${ink}`]);
        },
        tick() {
          ticks += 1;
        },
        *read({ client }) {
          yield* texts.get(client) ?? [];
        },
        count: ({ client }) => ({ texts: texts.get(client)?.length ?? 0, ticks, clerk: context.name }),
        fail({ why }) {
          throw new Error(why);
        },
      },
      stop: () => texts.clear(),
    };
  },
});
