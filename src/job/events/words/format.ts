import type { Unit } from "../figures.ts";

/** 12345678 → "12.3M": three digits and a letter for the thousands. */
export function formatCount(count: number): string {
  if (!Number.isFinite(count)) return "?";
  const letters = ["", "k", "M", "G", "T"];
  let scaled = count;
  let power = 0;
  // Compared as it will be printed, so that 999,999 becomes 1.00M and not 1000k.
  while (Math.abs(scaled) >= 999.5 && power < letters.length - 1) {
    scaled /= 1000;
    power++;
  }
  if (power === 0 && Number.isInteger(count)) return String(count);
  const digits = Math.abs(scaled) >= 99.95 ? 0 : Math.abs(scaled) >= 9.995 ? 1 : 2;
  return scaled.toFixed(digits) + letters[power];
}

/** 1288490188 → "1.29 GB": decimal units. */
export function formatBytes(sizeBytes: number): string {
  const count = formatCount(sizeBytes);
  const letter = /[kMGT]$/.exec(count)?.[0] ?? "";
  return `${letter === "" ? count : count.slice(0, -1)} ${letter}B`;
}

/** Formats a value with its unit: "3.1416" nats, "12.3k tokens/s", "87 %", "1.29 GB". */
export function formatFigure(value: number, unit: Unit): string {
  switch (unit) {
    case "nats":
      return value.toFixed(4);
    case "bytes":
      return formatBytes(value);
    case "share":
      return `${Math.round(100 * value)} %`;
    case "samples/s":
    case "tokens/s":
      return `${formatCount(value)} ${unit}`;
    case "ms":
      return `${formatMeasure(value)} ms`;
    case "":
      return formatMeasure(value);
  }
}

/** 0.81254 → "0.8125": four significant digits. */
export function formatMeasure(value: number): string {
  return Number.isFinite(value) ? String(Number(value.toPrecision(4))) : String(value);
}

/** Formats named numbers, to continue a line: ", accuracy 0.8125, f1 0.75". */
export function formatNamed(figures: Readonly<Record<string, number>>): string {
  return Object.entries(figures)
    .map(([name, value]) => `, ${printable(name).replace(/\s/g, " ")} ${formatMeasure(value)}`)
    .join("");
}

/** 3723000 → "1:02:03": hours, minutes and seconds; hours only where there are any. */
export function formatDuration(durationMs: number): string {
  if (!Number.isFinite(durationMs)) return "?";
  const seconds = Math.max(0, Math.round(durationMs / 1000));
  const two = (value: number) => String(value).padStart(2, "0");
  const minutes = Math.floor(seconds / 60) % 60;
  const hours = Math.floor(seconds / 3600);
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

/** Makes text safe for a terminal: control characters, which could move the cursor or worse, become visible, but \n and \t. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is looked for
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : "\uFFFD";
  });
}
