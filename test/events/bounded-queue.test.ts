import fc from "fast-check";
import { expect, test } from "vitest";
import { BoundedQueue } from "../../src/job/events/hub/bounded-queue.ts";

test("keeps the newest items in order and counts the others", () => {
  const commands = fc.array(fc.oneof(fc.constant("push"), fc.constant("shift"), fc.nat(4)), {
    maxLength: 200,
  });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 6 }), commands, (capacity, run) => {
      const queue = new BoundedQueue<number>(capacity);
      let model: number[] = [];
      let numDropped = 0;
      for (const [index, command] of run.entries()) {
        if (command === "push") {
          queue.push(index);
          model.push(index);
        } else if (command === "shift") {
          expect(queue.shift()).toBe(model.shift());
        } else {
          queue.keepNewest(command);
          numDropped += Math.max(0, model.length - command);
          model = command === 0 ? [] : model.slice(-command);
        }
        if (model.length > capacity) {
          model.shift();
          numDropped++;
        }
        expect([queue.length, queue.numDropped]).toEqual([model.length, numDropped]);
      }
      expect(queue.takeNumDropped()).toBe(numDropped);
      expect(queue.takeNumDropped()).toBe(0);
    }),
  );
});
