/**
 * A table of SentencePiece's kind, in base64, of characters of one byte and what replaces them: a double array whose root has offset 0,
 * and all other nodes 512.
 */
export function charsmapOf(replaced: Readonly<Record<string, string>>): string {
  const units = new Uint32Array(1024);
  let texts = "";
  for (const [character, made] of Object.entries(replaced)) {
    const byte = character.charCodeAt(0);
    units[byte] = (512 << 10) | 0x100 | byte;
    units[byte ^ 512] = (0x80000000 | Buffer.byteLength(texts)) >>> 0;
    texts += `${made}\0`;
  }
  const length = Buffer.alloc(4);
  length.writeUInt32LE(units.byteLength);
  return Buffer.concat([length, Buffer.from(units.buffer), Buffer.from(`${texts}\0`)]).toString("base64");
}
