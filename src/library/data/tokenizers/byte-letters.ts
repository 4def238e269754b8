/**
 * GPT-2's letters: a printable character for each byte, so that a vocabulary of bytes can be written as text. Source:
 * Radford et al. 2019, the published encoder.
 */
export const byteOfLetter: ReadonlyMap<string, number> = new Map(byteLetters());

function byteLetters(): [letter: string, byte: number][] {
  const isPrintable = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
  let others = 0;
  return Array.from({ length: 256 }, (_, byte) => [
    String.fromCodePoint(isPrintable(byte) ? byte : 256 + others++),
    byte,
  ]);
}
