import fc from "fast-check";
import { expect, test } from "vitest";
import { Queue } from "../../src/runtime/mailbox/queue.ts";
import { CodecSet, deepFreeze } from "../../src/runtime/transport/codec.ts";
import { codecs, Handle } from "./actors/preload.ts";

const set = new CodecSet(codecs);

test("a message without encoded values is passed on as it is, not copied", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(set.encode(value)).toBe(value);
      expect(set.decode(value)).toBe(value);
    }),
    { seed: 5 },
  );
});

test("values of a codec are encoded wherever they stand, and what is beside them is shared", () => {
  const beside = { list: [1, 2, 3] };
  const message = {
    first: new Handle(1),
    beside,
    deep: [{ second: new Handle(2) }],
    bytes: new Uint8Array(4),
  };
  const encoded = set.encode(message) as typeof message;
  expect(structuredClone(encoded)).toEqual(encoded);
  expect(encoded.beside).toBe(beside);
  expect(encoded.bytes).toBe(message.bytes);
  const decoded = set.decode(encoded) as typeof message;
  expect([decoded.first.id, decoded.deep[0]?.second.id]).toEqual([1, 2]);
  expect(message.first).toBeInstanceOf(Handle);
});

test("a message that contains itself is refused", () => {
  const message: { self?: unknown } = {};
  message.self = message;
  expect(() => set.encode(message)).toThrow(expect.objectContaining({ code: "MESSAGE_UNSENDABLE" }));
});

test("freezing reaches every plain part and leaves memory writable", () => {
  const message = { list: [{ value: 1 }], numbers: new Float32Array(2) };
  deepFreeze(message);
  expect(Object.isFrozen(message.list[0])).toBe(true);
  message.numbers[0] = 1;
  expect(message.numbers[0]).toBe(1);
});

test("a queue keeps the order of whatever is pushed, shifted and removed", () => {
  const step = fc.oneof(
    fc.record({ op: fc.constant("push" as const), value: fc.nat(9) }),
    fc.record({ op: fc.constant("shift" as const) }),
    fc.record({ op: fc.constant("remove" as const), value: fc.nat(9) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const queue = new Queue<number>();
      const model: number[] = [];
      for (const each of steps) {
        if (each.op === "push") {
          queue.push(each.value);
          model.push(each.value);
        } else if (each.op === "shift") expect(queue.shift()).toBe(model.shift());
        else {
          const index = model.indexOf(each.value);
          expect(queue.removeFirst((item) => item === each.value)).toBe(index < 0 ? undefined : each.value);
          if (index >= 0) model.splice(index, 1);
        }
        expect(queue.size).toBe(model.length);
      }
      expect(queue.drain()).toEqual(model);
    }),
    { seed: 7 },
  );
});
