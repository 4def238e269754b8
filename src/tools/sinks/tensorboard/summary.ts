import type { EventOf } from "../../../job/events/index.ts";
import { crc32c } from "../../../library/checkpoint/index.ts";
import {
  type Bytes,
  bytesField,
  bytesHeader,
  doubleField,
  floatField,
  message,
  packedDoubles,
  varintField,
} from "../../../library/protobuf.ts";

// The messages of TensorBoard's event files, by field.
// See tensorboard/compat/proto/{event,summary,tensor}.proto and tensorboard/plugins/hparams/plugin_data.proto.

const MASK_DELTA = 0xa282ead8;

const dtype = { float: 1, double: 2, string: 7 } as const;
/** Data class of a plugin's tensors. */
const TENSOR_CLASS = 2;

/** Encoded bytes. */
type Part = Bytes | Uint8Array;

/** A record of the file: length, payload, and a checksum of each. @param parts - of the payload, one after the other */
export function record(...parts: readonly Part[]): Buffer {
  const end = parts.reduce((size, part) => size + part.length, 12);
  const bytes = Buffer.allocUnsafe(end + 4);
  bytes.writeUInt32LE(end - 12, 0);
  bytes.writeUInt32LE(0, 4);
  bytes.writeUInt32LE(maskedCrc32c(bytes.subarray(0, 8)), 8);
  let at = 12;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  bytes.writeUInt32LE(maskedCrc32c(bytes.subarray(12, end)), end);
  return bytes;
}

/** The checksum of record files, rotated and offset, as in tensorflow/core/lib/hash/crc32c.h: a CRC of CRCs is weak. */
export function maskedCrc32c(bytes: Uint8Array): number {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + MASK_DELTA) >>> 0;
}

/** The first event of each file. */
export function versionEvent(timeMs: number): Bytes {
  return message(doubleField(1, timeMs / 1000), bytesField(3, "brain.Event:2"));
}

/** The record of an event with values, each from {@link valueField}. */
export function summaryRecord(timeMs: number, step: number, values: readonly Part[]): Buffer {
  const head = message(
    doubleField(1, timeMs / 1000),
    ...(step === 0 ? [] : [varintField(2, step)]),
    bytesHeader(
      5,
      values.reduce((size, value) => size + value.length, 0),
    ),
  );
  return record(head, ...values);
}

/** A value in a summary. */
export function valueField(value: Bytes): Bytes {
  return bytesField(1, value);
}

/**
 * A scalar of one tag: between steps only its last four bytes change. Written as a `simple_value` without metadata, like PyTorch's
 * `SummaryWriter.add_scalar`, which `EventAccumulator.Scalars` reads; TensorBoard's page shows it in its scalars plugin.
 */
export class KnownScalar {
  readonly #field: Buffer;

  constructor(tag: string) {
    this.#field = Buffer.from(valueField(message(bytesField(1, tag), floatField(2, 0))));
  }

  /** @returns a field of a summary, valid until the next call */
  at(value: number): Uint8Array {
    this.#field.writeFloatLE(value, this.#field.length - 4);
    return this.#field;
  }
}

/** @param text - in Markdown */
export function textValue(tag: string, text: string): Bytes {
  const shape = bytesField(2, message(varintField(1, 1)));
  const tensor = message(varintField(1, dtype.string), bytesField(2, shape), bytesField(8, text));
  return message(bytesField(1, tag), bytesField(8, tensor), metadata("text"));
}

export function histogramValue(tag: string, { min, limits, counts }: EventOf<"histogram.measured">): Bytes {
  const shape = [limits.length, 3].map((size) => bytesField(2, message(varintField(1, size))));
  const rows = limits.flatMap((limit, place) => [limits[place - 1] ?? min, limit, counts[place] ?? 0]);
  const tensor = message(
    varintField(1, dtype.double),
    bytesField(2, message(...shape)),
    packedDoubles(6, rows),
  );
  return message(bytesField(1, tag), bytesField(8, tensor), metadata("histograms"));
}

/** The settings of a run, by which the hparams plugin compares runs. */
export function sessionStart(
  settings: Readonly<Record<string, string | number | boolean>>,
  timeMs: number,
): Bytes {
  const entries = Object.entries(settings).map(([name, value]) =>
    bytesField(1, message(bytesField(1, name), bytesField(2, protobufValue(value)))),
  );
  const start = message(...entries, doubleField(5, timeMs / 1000));
  return hparamsValue("_hparams_/session_start_info", bytesField(3, start));
}

/** The end of a run. */
export function sessionEnd(succeeded: boolean, timeMs: number): Bytes {
  const end = message(varintField(1, succeeded ? 1 : 2), doubleField(2, timeMs / 1000));
  return hparamsValue("_hparams_/session_end_info", bytesField(4, end));
}

function hparamsValue(tag: string, content: Bytes): Bytes {
  // The plugin reads only the metadata, but a value must have a tensor: an empty one is expected.
  const shape = bytesField(2, message());
  const tensor = message(varintField(1, dtype.float), bytesField(2, shape));
  return message(bytesField(1, tag), bytesField(8, tensor), metadata("hparams", content));
}

/** A `google.protobuf.Value`. */
function protobufValue(value: string | number | boolean): Bytes {
  if (typeof value === "number") return doubleField(2, value);
  if (typeof value === "string") return bytesField(3, value);
  return varintField(4, value ? 1 : 0);
}

/** Names the plugin of a value; every value has it, so each record can be read alone. */
function metadata(plugin: string, content?: Bytes): Bytes {
  const data = message(bytesField(1, plugin), ...(content === undefined ? [] : [bytesField(2, content)]));
  return bytesField(9, message(bytesField(1, data), varintField(4, TENSOR_CLASS)));
}
