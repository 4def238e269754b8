// An actor: the messages that it understands, and what it does with each. It has a thread of its own.
import { defineActor } from "troupe/actors";

export type Judge = {
  mark: { in: { answer: string }; out: number };
};

export default defineActor<Judge>({
  start: () => ({
    handlers: { mark: ({ answer }) => answer.split(" ").length },
  }),
});
