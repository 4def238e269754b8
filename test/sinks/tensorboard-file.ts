import { maskedCrc32c } from "../../src/tools/sinks/tensorboard/summary.ts";

/** The payloads of an event file. @throws where a checksum is wrong, or the file ends in the midst of a record */
export function recordsOf(file: Buffer): Buffer[] {
  const records: Buffer[] = [];
  for (let at = 0; at < file.length; ) {
    const sizeBytes = Number(file.readBigUInt64LE(at));
    const record = file.subarray(at + 12, at + 12 + sizeBytes);
    const sums = [file.readUInt32LE(at + 8), file.readUInt32LE(at + 12 + sizeBytes)];
    const expected = [maskedCrc32c(file.subarray(at, at + 8)), maskedCrc32c(record)];
    if (sums.join() !== expected.join()) throw new Error(`a checksum of the record at ${at} is wrong`);
    records.push(record);
    at += 16 + sizeBytes;
  }
  return records;
}

/** A value of a `tensorboard.Summary` that is a plain number. */
export interface Scalar {
  readonly step: number;
  readonly tag: string;
  readonly value: number;
}

/** The plain numbers of an event: `simple_value` of each value of its summary. */
export function scalarsOf(event: Buffer): Scalar[] {
  const fields = fieldsOf(event);
  const step = Number(fields.find(({ number }) => number === 2)?.content ?? 0);
  const [summary] = fields.filter(({ number }) => number === 5);
  if (summary === undefined) return [];
  return fieldsOf(summary.content as Buffer).flatMap(({ content }) => {
    const value = new Map(fieldsOf(content as Buffer).map(({ number, content: inner }) => [number, inner]));
    const simple = value.get(2);
    return simple === undefined
      ? []
      : [{ step, tag: String(value.get(1)), value: (simple as Buffer).readFloatLE(0) }];
  });
}

interface Field {
  readonly number: number;
  readonly content: Buffer | bigint;
}

/** The fields of a message, by protobuf's wire format. */
function fieldsOf(message: Buffer): Field[] {
  const fields: Field[] = [];
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++] as number;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const bytes = (sizeBytes: number) => {
    at += sizeBytes;
    return message.subarray(at - sizeBytes, at);
  };
  const contentOf = (wireType: number) => {
    if (wireType === 0) return varint();
    return bytes(wireType === 1 ? 8 : wireType === 5 ? 4 : Number(varint()));
  };
  while (at < message.length) {
    const key = Number(varint());
    fields.push({ number: key >> 3, content: contentOf(key & 7) });
  }
  return fields;
}
