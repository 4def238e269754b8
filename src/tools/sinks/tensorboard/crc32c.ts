const POLYNOMIAL = 0x82f63b78;
const MASK_DELTA = 0xa282ead8;

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = (value & 1) === 0 ? value >>> 1 : (value >>> 1) ^ POLYNOMIAL;
  return value;
});

/** CRC-32C (Castagnoli) of some bytes, unsigned. @see RFC 3720, B.4 */
export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  // By index: a loop over an iterator takes several times as long until it is compiled.
  for (let at = 0; at < bytes.length; at++) {
    crc = (crc >>> 8) ^ (table[(crc ^ (bytes[at] as number)) & 0xff] as number);
  }
  return (crc ^ 0xffffffff) >>> 0;
}

/**
 * The checksum as record files hold it: turned and shifted, since a CRC of bytes that contain CRCs is weak.
 * @see tensorflow/core/lib/hash/crc32c.h
 */
export function maskedCrc32c(bytes: Uint8Array): number {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + MASK_DELTA) >>> 0;
}
