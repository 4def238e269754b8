import { crc32 } from "node:zlib";
import { TroupeError } from "../../../errors/index.ts";
import { ownValue } from "../../../errors/untrusted/index.ts";
import { exampleError, type JsonRecord } from "../formats/index.ts";
import type { RecordFormat } from "./block.ts";
import { type Forward, ForwardReader } from "./ranged-file.ts";
import { type TarDamage, type TarMember, tarMembers } from "./tar-members.ts";

/** A longer sample is bad. */
const MOST_SAMPLE_BYTES = 256 << 20;
/** A longer member of JSON or text is bad. */
const MOST_TEXT_BYTES = 32 << 20;

/** WebDataset's convention: neighbours whose names are the same up to the first dot are the fields of one sample. */
export const tar: RecordFormat = {
  async index(file, builder) {
    const reader = new ForwardReader(file);
    let done = 0;
    for await (const sample of tarSamples(reader, file.place)) {
      const { begin, end } = sample;
      builder.advance(end - done);
      done = end;
      if (end - begin > MOST_SAMPLE_BYTES) {
        builder.skip(
          exampleError(sample.place, `a sample of at most ${MOST_SAMPLE_BYTES} bytes`, end - begin),
        );
        continue;
      }
      const shape = sample.members.map(({ name, dataBegin, dataEnd }) => `${name} ${dataEnd - dataBegin}`);
      builder.sum = crc32(shape.join("\n"), builder.sum);
      builder.add(begin, end, await refusalOf(sample, reader, builder.check));
    }
    builder.advance(file.sizeBytes - done);
  },
  async read(file, block) {
    const bytes = await file.read(block.begin, block.end);
    const part: Forward = { sizeBytes: bytes.length, read: (begin, end) => bytes.subarray(begin, end) };
    const samples: TarSample[] = [];
    for await (const sample of tarSamples(part, file.place, block.begin)) samples.push(sample);
    return {
      length: samples.length,
      at(index) {
        const sample = samples[index] as TarSample;
        if (sample.refusal !== undefined) throw sample.refusal;
        const fields = [...fieldsOf(sample)].map(([field, { dataBegin, dataEnd }]) => {
          const data = bytes.subarray(dataBegin - block.begin, dataEnd - block.begin);
          return [field, readField(field, data, sample.place)] as const;
        });
        return Object.fromEntries([["__key__", sample.key], ...fields]);
      },
    };
  },
};

interface TarSample {
  readonly key: string;
  readonly place: string;
  readonly begin: number;
  readonly end: number;
  readonly members: readonly TarMember[];
  readonly refusal?: TroupeError;
}

async function* tarSamples(bytes: Forward, place: string, base = 0): AsyncGenerator<TarSample> {
  let members: TarMember[] = [];
  const sample = (): TarSample => {
    const [first, last] = [members[0], members.at(-1)] as [TarMember, TarMember];
    const key = keyOf(first.name);
    return { key, place: `${place}, sample ${key}`, begin: first.begin, end: last.end, members };
  };
  const isDamage = (found: TarMember | TarDamage): found is TarDamage => "refusal" in found;
  for await (const found of tarMembers(bytes, place, base)) {
    const [first] = members;
    const isSame = first !== undefined && !isDamage(found) && keyOf(found.name) === keyOf(first.name);
    if (!isSame && first !== undefined) {
      yield sample();
      members = [];
    }
    if (isDamage(found)) yield { key: "", place, members: [], ...found };
    else if (!isHidden(found.name)) members.push(found);
  }
  if (members.length > 0) yield sample();
}

/** Whether a name has no ending, begins with a dot, or with two underscores, which WebDataset keeps for itself. */
function isHidden(name: string): boolean {
  return !/^(?!\.|__)[^.]*\../.test(name.slice(name.lastIndexOf("/") + 1));
}

/** The path up to the first dot of the file's name, which is the sample's. */
function keyOf(name: string): string {
  return name.slice(0, dotIn(name));
}

/** The place of the first dot of a path's last name; its end without one. */
export const dotIn = (name: string): number => {
  const dot = name.indexOf(".", name.lastIndexOf("/") + 1);
  return dot < 0 ? name.length : dot;
};

function fieldsOf({ members, place }: TarSample): Map<string, TarMember> {
  const fields = new Map<string, TarMember>();
  for (const member of members) {
    const field = member.name.slice(dotIn(member.name) + 1).toLowerCase();
    if (fields.has(field)) throw exampleError(place, "each field once", `${field} twice`);
    fields.set(field, member);
  }
  return fields;
}

/** Why a sample is bad: pictures and sounds are not opened for it. */
async function refusalOf(
  sample: TarSample,
  bytes: Forward,
  check: (record: JsonRecord, place: string) => void,
): Promise<TroupeError | undefined> {
  if (sample.refusal !== undefined) return sample.refusal;
  try {
    const fields: [string, unknown][] = [["__key__", sample.key]];
    for (const [field, { dataBegin, dataEnd }] of fieldsOf(sample)) {
      fields.push([field, undefined]);
      if (ownValue(readers, lastOf(field)) === undefined) continue;
      if (dataEnd - dataBegin > MOST_TEXT_BYTES)
        throw exampleError(sample.place, `${field} of at most ${MOST_TEXT_BYTES} bytes`, dataEnd - dataBegin);
      fields.push([field, readField(field, await bytes.read(dataBegin, dataEnd), sample.place)]);
    }
    check(Object.fromEntries(fields), sample.place);
    return undefined;
  } catch (error) {
    if (error instanceof TroupeError) return error;
    throw error;
  }
}

const asText = (bytes: Buffer): string => bytes.toString("utf8");
const asJson = (bytes: Buffer, field: string, place: string): unknown => {
  try {
    return JSON.parse(asText(bytes));
  } catch (cause) {
    throw exampleError(place, `JSON in ${field}`, (cause as Error).message);
  }
};
const asNumber = (bytes: Buffer, field: string, place: string): number => {
  const text = asText(bytes).trim();
  if (/^-?\d{1,15}$/.test(text)) return Number(text);
  throw exampleError(place, `a whole number in ${field}`, JSON.stringify(text.slice(0, 40)));
};

/** How a field is read by its last ending, as in WebDataset; others stay bytes. */
const readers: Readonly<Record<string, (bytes: Buffer, field: string, place: string) => unknown>> = {
  txt: asText,
  text: asText,
  transcript: asText,
  json: asJson,
  jsn: asJson,
  cls: asNumber,
  cls2: asNumber,
  class: asNumber,
  count: asNumber,
  index: asNumber,
  inx: asNumber,
  id: asNumber,
};

const lastOf = (field: string): string => field.slice(field.lastIndexOf(".") + 1);

/** Reads a field by its name's last ending. @throws {TroupeError} `DATA_EXAMPLE` naming `place` */
export function readField(field: string, bytes: Buffer, place: string): unknown {
  const read = ownValue(readers, lastOf(field));
  return read === undefined ? bytes : read(bytes, field, place);
}
