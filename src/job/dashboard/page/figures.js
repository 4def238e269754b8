/** Formats numbers for people: three significant digits and a unit. */

/** Between a number and its unit. */
const thin = "\u202f";
const dash = "–";

/** @param {number} value @returns {string} 31900 → "31.9k" */
export function count(value) {
  if (!Number.isFinite(value)) return unusual(value);
  const letters = ["", "k", "M", "G", "T", "P"];
  let scaled = value;
  let power = 0;
  // Compares the rounded value: 999,999 is 1.00M.
  while (Math.abs(scaled) >= 999.5 && power < letters.length - 1) {
    scaled /= 1000;
    power++;
  }
  if (power === 0 && Number.isInteger(value)) return String(value);
  return digits(scaled) + letters[power];
}

/** @param {number} value @returns {string} 9797399 → "9.80 MB" */
export function bytes(value) {
  if (!Number.isFinite(value)) return unusual(value);
  const text = count(Math.round(value));
  const [, number, letter = ""] = /^([\d.–-]+)([a-zA-Z]?)$/.exec(text) ?? [];
  return `${number}${thin}${letter}B`;
}

/** @param {number} value in milliseconds @returns {string} 1.21 ms, 345 ms, 12.3 s */
export function milliseconds(value) {
  if (!Number.isFinite(value)) return unusual(value);
  return value < 999.5 ? `${digits(value)}${thin}ms` : `${digits(value / 1000)}${thin}s`;
}

/** @param {number} durationMs @returns {string} 0:42, 3:05, 1:02:03 */
export function duration(durationMs) {
  if (!Number.isFinite(durationMs)) return dash;
  const seconds = Math.max(0, Math.round(durationMs / 1000));
  const two = (/** @type {number} */ value) => String(value).padStart(2, "0");
  const minutes = Math.floor(seconds / 60) % 60;
  const hours = Math.floor(seconds / 3600);
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

/** @param {number} value from 0 to 1 @returns {string} */
export function percent(value) {
  return Number.isFinite(value) ? `${Math.round(100 * value)}${thin}%` : unusual(value);
}

/** @param {number} value @returns {string} 12345 → "12,345" */
export function integer(value) {
  return Number.isFinite(value) ? value.toLocaleString("en") : unusual(value);
}

/** @param {number} value @returns {string} four decimals, as on the console; NaN is shown */
export function loss(value) {
  return Number.isFinite(value) ? value.toFixed(4) : Number.isNaN(value) ? "NaN" : unusual(value);
}

/** @param {number} value @returns {string} three significant digits; a power of ten far from 1 */
export function significant(value) {
  if (!Number.isFinite(value)) return unusual(value);
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 0.001 && size < 10_000
    ? digits(value)
    : value.toExponential(2).replace("e-", "e−").replace("e+", "e");
}

/** @param {number} value @returns {string} */
function digits(value) {
  const size = Math.abs(value);
  if (size >= 99.95) return value.toFixed(0);
  if (size >= 9.995) return value.toFixed(1);
  if (size >= 0.9995) return value.toFixed(2);
  return value === 0 ? "0" : String(Number(value.toPrecision(3)));
}

/** @param {number} value @returns {string} */
function unusual(value) {
  return Number.isNaN(value) ? dash : value > 0 ? "∞" : "−∞";
}
