// An actor that receives the runtime's events as messages.
import type { EventOf } from "troupe";
import { defineActor } from "troupe/actors";

export type Recorder = {
  stepped: { in: EventOf<"step.finished"> };
  report: { in: null; out: { numSteps: number; marks: number[] } };
};

export default defineActor<Recorder>({
  start() {
    const marks: number[] = [];
    return {
      handlers: {
        stepped: ({ metrics }) => void marks.push(metrics?.mark ?? Number.NaN),
        report: () => ({ numSteps: marks.length, marks }),
      },
    };
  },
});
