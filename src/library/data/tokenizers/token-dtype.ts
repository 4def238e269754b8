/** Tokens in memory: unsigned, little-endian, with the smallest element that fits the vocabulary. */
export type TokenArray = Uint8Array | Uint16Array | Uint32Array;

/** The element type of a {@link TokenArray}, as stored in a token file. */
export type TokenDType = "uint8" | "uint16" | "uint32";

const elements = {
  uint8: { bytesPerToken: 1, array: Uint8Array, tensorDType: "uint8" },
  uint16: { bytesPerToken: 2, array: Uint16Array, tensorDType: "int16" },
  uint32: { bytesPerToken: 4, array: Uint32Array, tensorDType: "int32" },
} as const;

/** Returns the smallest dtype for tokens below `vocabSize`. */
export function tokenDType(vocabSize: number): TokenDType {
  if (vocabSize <= 0x100) return "uint8";
  return vocabSize <= 0x10000 ? "uint16" : "uint32";
}

/** Size of one token, in bytes. */
export function bytesPerToken(dtype: TokenDType): number {
  return elements[dtype].bytesPerToken;
}

/**
 * The tensor dtype with the same bits, for mapping a token file: the kernel `token_windows` reads int16 as
 * uint16, and int32 holds every token because vocabularies stay below 2^31.
 */
export function tensorDType(dtype: TokenDType): "uint8" | "int16" | "int32" {
  return elements[dtype].tensorDType;
}

/** A zeroed array of `numTokens`. */
export function newTokenArray(dtype: TokenDType, numTokens: number): TokenArray {
  return new elements[dtype].array(numTokens);
}

/** The bytes of `tokens`, sharing their memory. */
export function tokenBytes(tokens: TokenArray): Uint8Array {
  return new Uint8Array(tokens.buffer, tokens.byteOffset, tokens.byteLength);
}
