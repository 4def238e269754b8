import type { Chance } from "../chance.ts";

/** JSON as it is written: a text that stands in for a value is written as it is. */
export class Raw {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Names that every object of JavaScript has from the language. */
export const languageNames = [
  "constructor",
  "__proto__",
  "toString",
  "hasOwnProperty",
  "valueOf",
  "prototype",
];

/** Patterns that take RegExp a time that grows with the square of a text or worse, and such as are none. */
export const patterns = [
  "(a+)+$",
  "(a|a)*$",
  "(a|aa)+$",
  "([a-zA-Z]+)*$",
  "(.*a){12}$",
  "(?=(a+))a*b",
  "^(\\s+)+x",
  "\\s*x|\\s*y",
  "(x+x+)+y",
  "(\\w+\\s?)*$",
  "(?:a?){30}a{30}",
  "a{1,200}b",
  "(a{1,50}){1,50}{1,50}",
  "(a)\\1",
  "(",
  "[",
  "(?<n>a)\\k<n>",
  `${"(".repeat(500)}a${")".repeat(500)}`,
  `[${"[".repeat(200)}a${"]".repeat(200)}]`,
  "(?i:(a+)+)$",
  "(?>a+)+$",
  "a++$",
  "",
  "x*",
];

/** Places of a machine where names of files lead to what is no file of a model. */
export const paths = ["../../../etc/passwd", "/etc/passwd", "/dev/zero", "/proc/self/mem", "a\0b", ".", ""];

/** A value that a reader may not expect. */
export function hostileValue(chance: Chance): unknown {
  const makers: readonly (() => unknown)[] = [
    () => null,
    () => true,
    () => chance.pick([0, -1, 1.5, 1e9, 2 ** 31, 2 ** 32, 2 ** 53, 1e15, 1e308, -1e308]),
    () =>
      new Raw(
        chance.pick(["1e400", "NaN", "-0", "9".repeat(400), "0x10", "01", "1e-400", "9007199254740993"]),
      ),
    () => "",
    () => chance.pick(languageNames),
    () => chance.pick(patterns),
    () => chance.pick(paths),
    () => "a".repeat(chance.pick([300, 10_000, 400_000])),
    () => new Raw('"\\ud800"'),
    () => "\u{FDFA}".repeat(200),
    () => [],
    () => ({}),
    () => new Raw("[".repeat(chance.pick([70, 5_000, 200_000])) + "]".repeat(70)),
    () => new Raw(`${'{"a":'.repeat(chance.pick([70, 50_000]))}1`),
    () => new Raw(`[${"[],".repeat(chance.pick([1_000, 150_000]))}0]`),
    () =>
      new Raw(
        `{${Array.from({ length: chance.pick([100, 20_000]) }, (_, key) => `"k${key}":{}`).join(",")}}`,
      ),
    () => Array.from({ length: 50 }, () => chance.pick([null, 1e9, "x", {}, []])),
    () => ({ [chance.pick(languageNames)]: chance.pick([1, "x", {}]) }),
    () => ({ Regex: chance.pick(patterns) }),
  ];
  return chance.pick(makers)();
}

/** A value like another, but for one to three places of it. */
export function changed(value: unknown, chance: Chance): unknown {
  let made = value;
  for (let count = 1 + chance.below(3); count > 0; count--) made = changedOnce(made, chance, 0);
  return made;
}

function changedOnce(value: unknown, chance: Chance, depth: number): unknown {
  if (
    value instanceof Raw ||
    typeof value !== "object" ||
    value === null ||
    (depth > 0 && chance.below(4) === 0)
  )
    return hostileValue(chance);
  if (Array.isArray(value)) {
    if (value.length === 0) return [hostileValue(chance)];
    const place = chance.below(value.length);
    return value.map((each, index) => (index === place ? changedOnce(each, chance, depth + 1) : each));
  }
  const entries = Object.entries(value);
  const place = chance.below(entries.length + 1);
  if (place === entries.length)
    return Object.fromEntries([...entries, [chance.pick(languageNames), hostileValue(chance)]]);
  return Object.fromEntries(
    entries.flatMap(([name, each], index): [string, unknown][] => {
      if (index !== place) return [[name, each]];
      switch (chance.below(8)) {
        case 0:
          return [];
        case 1:
          return [[chance.pick(languageNames), each]];
        default:
          return [[name, changedOnce(each, chance, depth + 1)]];
      }
    }),
  );
}

/** JSON of a value, with what stands in it as {@link Raw} as it is. */
export function written(value: unknown): string {
  if (value instanceof Raw) return value.text;
  if (Array.isArray(value)) return `[${value.map(written).join(",")}]`;
  if (typeof value === "object" && value !== null)
    return `{${Object.entries(value)
      .map(([name, each]) => `${JSON.stringify(name)}:${written(each)}`)
      .join(",")}}`;
  return JSON.stringify(value) ?? "null";
}

/** Bytes like others, but for some: numbers that say how much follows are made large, stretches are left out or doubled. */
export function changedBytes(bytes: Buffer, chance: Chance): Buffer {
  const copy = Buffer.from(bytes);
  for (let count = 1 + chance.below(4); count > 0 && copy.length > 8; count--) {
    // Lengths and counts stand at the beginning and at the end.
    const near = Math.min(copy.length, chance.pick([40, 400, copy.length]));
    const at = chance.below(2) === 0 ? chance.below(near) : copy.length - 1 - chance.below(near);
    const place = Math.max(0, Math.min(at, copy.length - 8));
    switch (chance.below(6)) {
      case 0:
        copy[at] = (copy[at] ?? 0) ^ (1 << chance.below(8));
        break;
      case 1:
        copy.writeUInt32LE(chance.pick([0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 1_000_000]), place);
        break;
      case 2:
        copy.writeUInt32BE(chance.pick([0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 1_000_000]), place);
        break;
      case 3:
        copy.writeBigUInt64LE(chance.pick([0n, 1n, 2n ** 31n, 2n ** 53n, 2n ** 63n, 2n ** 64n - 1n]), place);
        break;
      case 4:
        return Buffer.concat([copy.subarray(0, at), copy.subarray(at + 1 + chance.below(16))]);
      default:
        copy.fill(chance.pick([0, 0x7f, 0x80, 0xff]), place, place + 1 + chance.below(8));
    }
  }
  return copy;
}
