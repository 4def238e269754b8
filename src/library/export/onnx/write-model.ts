import { open } from "node:fs/promises";
import { basename } from "node:path";
import { type Bytes, bytesField, bytesHeader, floatField, message, varintField } from "../../protobuf.ts";
import { exportError } from "../export-error.ts";
import {
  type Attribute,
  type Initializer,
  type OnnxGraph,
  type OnnxNode,
  type OnnxValue,
  typeCode,
} from "./types.ts";

/** A protobuf message has at most 2 GiB: larger weights are in a file of their own. */
const MAX_MESSAGE_BYTES = 2 ** 31 - 2 ** 20;

/** Data in a file of its own begins at multiples of this, so that it can be mapped. */
const ALIGNMENT = 4096;

/** Versions of the format by opset. */
function irVersion(opset: number): number {
  return opset >= 21 ? 10 : opset >= 19 ? 9 : 8;
}

/**
 * Writes a model file. Initializers are read and written one after the other; if they are too large for one message, they are in
 * the file `<path>_data` beside it.
 * @param maxMessageBytes - largest model file
 * @see https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
 */
export async function writeModel(
  path: string,
  graph: OnnxGraph,
  {
    opset,
    maxMessageBytes = MAX_MESSAGE_BYTES,
  }: { readonly opset: number; readonly maxMessageBytes?: number },
): Promise<string[]> {
  const totalBytes = graph.initializers.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const isApart = totalBytes > maxMessageBytes;
  const dataPath = `${path}_data`;
  const offsets = isApart ? placesOf(graph.initializers) : undefined;
  const parts = graph.initializers.map((initializer) =>
    tensorParts(initializer, offsets && { file: basename(dataPath), offset: offsets.get(initializer) ?? 0 }),
  );
  const before = [...graph.nodes.map((node) => bytesField(1, nodeMessage(node))), bytesField(2, "troupe")];
  const after = [
    ...graph.inputs.map((value) => bytesField(11, valueMessage(value))),
    ...graph.outputs.map((value) => bytesField(12, valueMessage(value))),
  ];
  const sizeOf = (fields: readonly Bytes[]) => fields.reduce((sum, field) => sum + field.length, 0);
  const graphBytes =
    sizeOf(before) +
    sizeOf(after) +
    parts.reduce((sum, { header, dataBytes }) => sum + header.length + dataBytes, 0);
  const head = message(
    varintField(1, irVersion(opset)),
    bytesField(2, "troupe"),
    bytesField(8, message(varintField(2, opset))),
    bytesHeader(7, graphBytes),
  );
  const file = await open(path, "wx");
  try {
    const put = async (bytes: Uint8Array) => void (await file.appendFile(bytes));
    await put(Uint8Array.from(head));
    for (const field of before) await put(Uint8Array.from(field));
    for (const [index, { header, dataBytes }] of parts.entries()) {
      await put(Uint8Array.from(header));
      if (dataBytes > 0) await put(await bytesOf(graph.initializers[index] as Initializer));
    }
    for (const field of after) await put(Uint8Array.from(field));
  } finally {
    await file.close();
  }
  if (offsets === undefined) return [path];
  const data = await open(dataPath, "wx");
  try {
    let end = 0;
    for (const [initializer, offset] of offsets) {
      // Appended with its padding: a write at a place may be cut short, and has at most 2 GiB.
      await data.appendFile(new Uint8Array(offset - end));
      await data.appendFile(await bytesOf(initializer));
      end = offset + initializer.sizeBytes;
    }
  } finally {
    await data.close();
  }
  return [path, dataPath];
}

async function bytesOf(initializer: Initializer): Promise<Uint8Array> {
  const bytes = await initializer.read();
  if (bytes.length === initializer.sizeBytes) return bytes;
  throw exportError(`${initializer.sizeBytes} bytes of ${initializer.name}`, `${bytes.length}`);
}

/** Small tensors stay in the model, where shapes are computed from them. */
const SMALL_BYTES = 1024;

function placesOf(initializers: readonly Initializer[]): Map<Initializer, number> {
  const places = new Map<Initializer, number>();
  let end = 0;
  for (const initializer of initializers) {
    if (initializer.sizeBytes <= SMALL_BYTES) continue;
    places.set(initializer, end);
    end = Math.ceil((end + initializer.sizeBytes) / ALIGNMENT) * ALIGNMENT;
  }
  return places;
}

/** The bytes of a TensorProto up to its data, with the header of the field that it is. */
function tensorParts(
  { name, dtype, shape, sizeBytes }: Initializer,
  apart: { readonly file: string; readonly offset: number } | undefined,
): { readonly header: Bytes; readonly dataBytes: number } {
  const facts = [
    ...shape.map((size) => varintField(1, size)),
    varintField(2, typeCode(dtype)),
    bytesField(8, name),
  ];
  if (apart !== undefined && sizeBytes > SMALL_BYTES) {
    const entry = (key: string, value: string | number) =>
      bytesField(13, message(bytesField(1, key), bytesField(2, `${value}`)));
    const { file, offset } = apart;
    const places = [entry("location", file), entry("offset", offset), entry("length", sizeBytes)];
    const all = message(...facts, ...places, varintField(14, 1));
    return { header: bytesField(5, all), dataBytes: 0 };
  }
  const begin = message(...facts, bytesHeader(9, sizeBytes));
  return { header: message(bytesHeader(5, begin.length + sizeBytes), begin), dataBytes: sizeBytes };
}

function nodeMessage({ operator, inputs, outputs, attributes }: OnnxNode): Bytes {
  return message(
    ...inputs.map((input) => bytesField(1, input)),
    ...outputs.map((output) => bytesField(2, output)),
    bytesField(3, outputs[0] ?? ""),
    bytesField(4, operator),
    ...Object.entries(attributes).map(([name, attribute]) =>
      bytesField(5, attributeMessage(name, attribute)),
    ),
  );
}

function attributeMessage(name: string, attribute: Attribute): Bytes {
  const own = bytesField(1, name);
  if ("float" in attribute) return message(own, floatField(2, attribute.float), varintField(20, 1));
  if ("int" in attribute) return message(own, varintField(3, attribute.int), varintField(20, 2));
  if ("string" in attribute) return message(own, bytesField(4, attribute.string), varintField(20, 3));
  if ("graph" in attribute) {
    const { nodes, outputs } = attribute.graph;
    const graph = message(
      ...nodes.map((node) => bytesField(1, nodeMessage(node))),
      bytesField(2, name),
      ...outputs.map((value) => bytesField(12, valueMessage(value))),
    );
    return message(own, bytesField(6, graph), varintField(20, 5));
  }
  return message(own, ...attribute.ints.map((int) => varintField(8, int)), varintField(20, 7));
}

function valueMessage({ name, dtype, shape }: OnnxValue): Bytes {
  const dims = shape.map((size) =>
    bytesField(1, typeof size === "number" ? varintField(1, size) : bytesField(2, size)),
  );
  const tensorType = message(varintField(1, typeCode(dtype)), bytesField(2, message(...dims)));
  return message(bytesField(1, name), bytesField(2, bytesField(1, tensorType)));
}
