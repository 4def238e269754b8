import { randomUUID } from "node:crypto";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { crc32 } from "node:zlib";
import {
  maxFileBytes,
  openRegular,
  parseBoundedJson,
  readBoundedText,
} from "../../../errors/untrusted/index.ts";
import { bytesPerToken, type TokenArray, type TokenDType, tokenBytes } from "../tokenizers/token-dtype.ts";
import type { TokenizerSpec } from "../tokenizers/tokenizer.ts";

/** A file of nothing but tokens, little-endian, to be mapped into memory. Plain data. */
export interface TokenFile {
  readonly path: string;
  /** The text as the user named it, for messages. */
  readonly source: string;
  readonly dtype: TokenDType;
  readonly numTokens: number;
  /** Every token is below it. */
  readonly vocabSize: number;
}

/** The small JSON file next to a token file; written last, so that its existence means the tokens are complete. */
export interface TokenFileNote {
  readonly formatVersion: 1;
  readonly dtype: TokenDType;
  readonly numTokens: number;
  readonly vocabSize: number;
  /** CRC-32 of the token file. */
  readonly crc32: number;
  readonly textSizeBytes: number;
  readonly textSha256: string;
  readonly tokenizer: TokenizerSpec;
}

const readChunkBytes = 1 << 22;

/**
 * Writes the tokens of `parts` to `path` atomically and durably. Concurrent writers of the same path do not disturb
 * each other; the last one wins.
 * @returns number and CRC-32 of the tokens written
 */
export async function writeTokens(
  path: string,
  parts: AsyncIterable<TokenArray>,
): Promise<{ numTokens: number; crc32: number }> {
  let numTokens = 0;
  let crc = 0;
  await replaceFile(path, async (file) => {
    for await (const part of parts) {
      const bytes = tokenBytes(part);
      crc = crc32(bytes, crc);
      numTokens += part.length;
      await file.appendFile(bytes);
    }
  });
  return { numTokens, crc32: crc };
}

/** Writes the note of the token file at `tokensPath`, once the tokens are in place. */
export async function writeNote(tokensPath: string, note: TokenFileNote): Promise<void> {
  await replaceFile(notePath(tokensPath), (file) => file.appendFile(`${JSON.stringify(note)}\n`));
}

/**
 * Reads the note of the token file at `tokensPath`, and compares the tokens with it.
 * @returns undefined where there is none, or where it describes another file
 */
export async function verifiedNote(tokensPath: string): Promise<TokenFileNote | undefined> {
  try {
    const note = parseBoundedJson(
      await readBoundedText(notePath(tokensPath), maxFileBytes.tokenizer),
    ) as TokenFileNote;
    if (![note.numTokens, note.vocabSize].every((count) => Number.isSafeInteger(count) && count > 0))
      return undefined;
    const found = await measure(tokensPath);
    const expectedBytes = note.numTokens * bytesPerToken(note.dtype);
    const whole = note.formatVersion === 1 && found.sizeBytes === expectedBytes && found.crc32 === note.crc32;
    return whole ? note : undefined;
  } catch {
    return undefined;
  }
}

const notePath = (tokensPath: string): string => `${tokensPath}.json`;

async function replaceFile(path: string, write: (file: FileHandle) => Promise<void>): Promise<void> {
  const temporary = `${path}.tmp-${randomUUID()}`;
  const file = await open(temporary, "wx");
  try {
    try {
      await write(file);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

async function measure(path: string): Promise<{ sizeBytes: number; crc32: number }> {
  const file = await openRegular(path);
  try {
    const bytes = new Uint8Array(readChunkBytes);
    let sizeBytes = 0;
    let crc = 0;
    while (true) {
      const { bytesRead } = await file.read(bytes);
      if (bytesRead === 0) return { sizeBytes, crc32: crc };
      crc = crc32(bytes.subarray(0, bytesRead), crc);
      sizeBytes += bytesRead;
    }
  } finally {
    await file.close();
  }
}
