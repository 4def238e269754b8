import { type ActorRef, defineActor } from "troupe/actors";
import { attach, moveRef, type TensorRef } from "troupe/tensor";

/** Marks answers; falls on demand. */
export type Judge = {
  mark: { in: { text: string }; out: number };
  note: { in: { text: string } };
  noted: { in: Record<string, never>; out: readonly string[] };
  fall: { in: { why: string } };
  /** Lets what comes next wait, and falls. */
  endLater: { in: { why: string } };
  refuse: { in: { why: string }; out: never };
  through: { in: { other: ActorRef<Judge>; text: string }; out: number };
  /** The sum of a tensor, which it takes or reads. */
  sum: { in: { tensor: TensorRef }; out: number };
  /** Squares of a tensor, answered as a tensor. */
  square: { in: { tensor: TensorRef }; out: { tensor: TensorRef } };
  stepped: { in: { step: number; lossNats: number } };
  place: { in: Record<string, never>; out: { readonly pid: number; readonly incarnation: number } };
};

export default defineActor<Judge, { readonly word: string }>({
  start(context, { word }) {
    const notes: string[] = [];
    return {
      handlers: {
        mark: ({ text }) => text.split(word).length - 1,
        note: ({ text }) => void notes.push(text),
        noted: () => notes,
        fall({ why }) {
          throw new Error(why);
        },
        endLater: ({ why }) =>
          new Promise<never>(() => {
            setTimeout(() => {
              throw new Error(why);
            }, 100);
          }),
        refuse({ why }) {
          throw new Error(why);
        },
        through: ({ other, text }) => other.ask("mark", { text }, { deadlineMs: 10_000 }),
        sum({ tensor }) {
          using numbers = attach(tensor);
          using sum = numbers.sum();
          return sum.item();
        },
        square({ tensor }) {
          using numbers = attach(tensor);
          return { tensor: moveRef(numbers.mul(numbers)) };
        },
        stepped: ({ step }) => void notes.push(`step ${step}`),
        place: () => ({ pid: process.pid, incarnation: context.incarnation }),
      },
    };
  },
});
