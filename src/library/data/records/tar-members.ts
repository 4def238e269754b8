import type { TroupeError } from "../../../errors/index.ts";
import { exampleError } from "../formats/index.ts";
import type { Forward } from "./ranged-file.ts";

/** A regular file in a tar. */
export interface TarMember {
  readonly name: string;
  /** Its first header, and the end of its padding. */
  readonly begin: number;
  readonly end: number;
  /** Its bytes. */
  readonly dataBegin: number;
  readonly dataEnd: number;
}

/** A header that is none, or a member that goes beyond the end. */
export interface TarDamage {
  readonly begin: number;
  readonly end: number;
  readonly refusal: TroupeError;
}

const BLOCK = 512;
/** Longer descriptions of a member are refused. */
const MOST_DESCRIPTION_BYTES = 1 << 20;
/** After so many bytes without a header the rest of a file is given up. */
const MOST_DAMAGED_BYTES = 256 << 20;

/**
 * Finds the regular files of a tar, or of a part of it that begins with a header, by ustar's headers with those of pax and GNU for
 * long names and sizes. After damage it goes on with the next valid header.
 * @param base - place of the part within the file
 * @see https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html
 */
export async function* tarMembers(
  bytes: Forward,
  place: string,
  base = 0,
): AsyncGenerator<TarMember | TarDamage> {
  let at = 0;
  let begin: number | undefined;
  let given: Readonly<Record<string, string>> = {};
  const damage = (end: number, got: string) => ({
    begin: base + (begin ?? at),
    end: base + end,
    refusal: exampleError(`${place}, byte ${base + at}`, "a tar's header", got),
  });
  while (at + BLOCK <= bytes.sizeBytes) {
    const head = await bytes.read(at, at + BLOCK);
    if (isEmpty(head)) return;
    const size = isHeader(head) ? numberIn(head, 124, 136) : undefined;
    const sizeBytes = given.size === undefined ? size : Number(given.size);
    const dataBegin = at + BLOCK;
    const dataEnd = dataBegin + (sizeBytes ?? 0);
    if (
      sizeBytes === undefined ||
      !(Number.isSafeInteger(sizeBytes) && sizeBytes >= 0) ||
      dataEnd > bytes.sizeBytes
    ) {
      const next = await nextHeader(bytes, at + BLOCK);
      yield damage(
        next,
        size === undefined ? "other bytes" : `a member of ${sizeBytes} bytes, which are not there`,
      );
      [at, begin, given] = [next, undefined, {}];
      continue;
    }
    const end = Math.min(bytes.sizeBytes, dataBegin + Math.ceil(sizeBytes / BLOCK) * BLOCK);
    const kind = String.fromCharCode(head[156] ?? 0);
    if (kind === "x" || kind === "L") {
      if (sizeBytes > MOST_DESCRIPTION_BYTES) {
        yield damage(end, `a name of ${sizeBytes} bytes`);
        [at, begin, given] = [end, undefined, {}];
        continue;
      }
      const text = await bytes.read(dataBegin, dataEnd);
      given = { ...given, ...(kind === "x" ? paxRecords(text) : { path: textIn(text, 0, text.length) }) };
      begin ??= at;
    } else {
      if (kind === "0" || kind === "\0" || kind === "7")
        yield {
          name: given.path ?? nameIn(head),
          begin: base + (begin ?? at),
          end: base + end,
          dataBegin: base + dataBegin,
          dataEnd: base + dataEnd,
        };
      [begin, given] = [undefined, {}];
    }
    at = end;
  }
  if (at < bytes.sizeBytes) {
    const rest = await bytes.read(at, bytes.sizeBytes);
    if (!isEmpty(rest)) yield damage(bytes.sizeBytes, `${rest.length} bytes and the end of the file`);
  }
}

/** The place of the next header from `from` on; the end of the file without one near. */
async function nextHeader(bytes: Forward, from: number): Promise<number> {
  const end = Math.min(bytes.sizeBytes, from + MOST_DAMAGED_BYTES);
  for (let at = from; at + BLOCK <= end; at += BLOCK) {
    if (isHeader(await bytes.read(at, at + BLOCK))) return at;
  }
  return bytes.sizeBytes;
}

function isEmpty(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0);
}

/** Whether a header's sum is right: of its bytes, with blanks in place of the sum. */
function isHeader(head: Buffer): boolean {
  const given = numberIn(head, 148, 156);
  if (given === undefined) return false;
  let sum = 8 * 32;
  for (let at = 0; at < BLOCK; at++) if (at < 148 || at >= 156) sum += head[at] as number;
  return given === sum;
}

/** A number in octal digits, or in GNU's binary form. */
function numberIn(head: Buffer, begin: number, end: number): number | undefined {
  const [first = 0] = head.subarray(begin, end);
  if (first === 0x80) return Number(BigInt(`0x${head.toString("hex", begin + 1, end)}`));
  const digits = textIn(head, begin, end).trim();
  return /^[0-7]+$/.test(digits) ? Number.parseInt(digits, 8) : undefined;
}

function textIn(bytes: Buffer, begin: number, end: number): string {
  const zero = bytes.subarray(begin, end).indexOf(0);
  return bytes.toString("utf8", begin, zero < 0 ? end : begin + zero);
}

function nameIn(head: Buffer): string {
  const name = textIn(head, 0, 100);
  const prefix = textIn(head, 257, 263) === "ustar" ? textIn(head, 345, 500) : "";
  return prefix === "" ? name : `${prefix}/${name}`;
}

/** The path and the size of a pax header: lines of `LENGTH NAME=VALUE`. */
function paxRecords(bytes: Buffer): Record<string, string> {
  const records: Record<string, string> = {};
  for (let at = 0; at < bytes.length; ) {
    const blank = bytes.indexOf(32, at);
    const length = blank < 0 ? 0 : Number(bytes.toString("latin1", at, blank));
    if (!(Number.isSafeInteger(length) && length > blank - at && length > 0)) break;
    const [name = "", ...value] = bytes.toString("utf8", blank + 1, at + length - 1).split("=");
    if (name === "path" || name === "size") records[name] = value.join("=");
    at += length;
  }
  return records;
}
