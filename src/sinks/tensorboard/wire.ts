/** What a field of a message may be on the wire. @see https://protobuf.dev/programming-guides/encoding */
const wire = { varint: 0, fixed64: 1, lengthDelimited: 2, fixed32: 5 } as const;

/** A message is the bytes of its fields, one after the other. */
export function message(...fields: readonly Uint8Array[]): Buffer {
  return Buffer.concat(fields);
}

/** @param value - a whole number from 0 to 2^53 */
export function varintField(number: number, value: number): Buffer {
  return Buffer.concat([tag(number, wire.varint), varint(value)]);
}

export function doubleField(number: number, value: number): Buffer {
  return Buffer.concat([tag(number, wire.fixed64), doubles([value])]);
}

export function floatField(number: number, value: number): Buffer {
  return Buffer.concat([tag(number, wire.fixed32), floats([value])]);
}

/** Bytes, a text in UTF-8, or a message within the message. */
export function bytesField(number: number, value: Uint8Array | string): Buffer {
  const bytes = typeof value === "string" ? Buffer.from(value) : value;
  return Buffer.concat([tag(number, wire.lengthDelimited), varint(bytes.length), bytes]);
}

export function packedFloats(number: number, values: readonly number[]): Buffer {
  return bytesField(number, floats(values));
}

export function packedDoubles(number: number, values: readonly number[]): Buffer {
  return bytesField(number, doubles(values));
}

function tag(number: number, type: number): Buffer {
  return varint(number * 8 + type);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  // Not by shifts, which would cut the number to 32 bits.
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  bytes.push(rest);
  return Buffer.from(bytes);
}

function floats(values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [index, value] of values.entries()) bytes.writeFloatLE(value, 4 * index);
  return bytes;
}

function doubles(values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(8 * values.length);
  for (const [index, value] of values.entries()) bytes.writeDoubleLE(value, 8 * index);
  return bytes;
}
