import { nearestName, whatWasMeant } from "../../../errors/index.ts";
import { type Flag, flags } from "../../../job/rapidformer/index.ts";
import { usage } from "../flags.ts";

/** A flag's argument: none, one value, or several. */
export type Typed = true | string | number | readonly string[];

/** A parsed command line: the argument of each flag, by the flag's first name. */
export type TypedFlags = ReadonlyMap<string, Typed>;

const byName = new Map(flags.flatMap((each) => [each.flag, ...each.also].map((name) => [plain(name), each])));

/**
 * Parses Rapidformer's flags as its argparse does: `--lr 1e-3`, `--lr=1e-3`, with dashes or underscores; the last of repeated
 * flags wins. Skips blank arguments, which a shell makes of a backslash before a comment.
 * @param others - the runtime's own flags, for "did you mean"
 * @throws {TroupeError} `USAGE` for a value that the flag does not take, or for a flag that is refused, with its replacement
 */
export function parse(argv: readonly string[], others: readonly string[] = []): TypedFlags {
  const typed = new Map<string, Typed>();
  const words = argv.filter((word) => word.trim() !== "");
  for (let at = 0; at < words.length; ) {
    const word = words[at] as string;
    const [name = "", inline] = halves(word);
    const flag = byName.get(plain(name));
    at += 1;
    if (flag === undefined || !name.startsWith("--"))
      throw usage("a flag", word, whatWasMeant(name, [...flags.map(({ flag: own }) => own), ...others]));
    if (flag.fate.is === "refused") throw usage("a flag that Troupe supports", name, `use ${flag.fate.use}`);
    const end = inline === undefined ? at + numValues(flag, words, at) : at;
    const values = inline === undefined ? words.slice(at, end) : [inline];
    at = end;
    typed.set(flag.flag, read(flag, name, values));
  }
  return typed;
}

/** Returns arguments that {@link parse} reads back as `typed`, in the order of the table of flags. */
export function argvOf(typed: TypedFlags): string[] {
  return flags.flatMap(({ flag }) => {
    const value = typed.get(flag);
    if (value === undefined) return [];
    if (value === true) return [flag];
    return typeof value === "object" && value.length > 1 ? [flag, ...value] : [`${flag}=${value}`];
  });
}

function plain(name: string): string {
  return name.replaceAll("_", "-").toLowerCase();
}

function halves(word: string): readonly [string, string | undefined] {
  const equals = word.indexOf("=");
  return word.startsWith("--") && equals > 0
    ? [word.slice(0, equals), word.slice(equals + 1)]
    : [word, undefined];
}

/** Number of words after a flag that are its values. */
function numValues({ takes }: Flag, words: readonly string[], at: number): number {
  if (takes === "nothing") return 0;
  if (takes !== "texts") return at < words.length && !(words[at] as string).startsWith("--") ? 1 : 0;
  const next = words.findIndex((word, index) => index >= at && word.startsWith("--"));
  return (next < 0 ? words.length : next) - at;
}

function read({ takes }: Flag, name: string, values: readonly string[]): Typed {
  if (takes === "nothing") {
    if (values.length === 0) return true;
    throw usage(`${name} alone`, `${name}=${values[0]}`, "it is given or left out");
  }
  const [value] = values;
  if (value === undefined) throw usage(`a value for ${name}`, "none", "write it after the flag");
  if (takes === "texts") return values;
  if (takes === "text") return value;
  if (takes === "number" || takes === "integer") return numberOf(name, value, takes === "integer");
  if (takes.includes(value)) return value;
  const near = nearestName(value, takes);
  const advice = near === undefined ? "choose one of them" : `did you mean ${near}?`;
  throw usage(`${name} to be one of ${takes.join(", ")}`, value, advice);
}

function numberOf(name: string, text: string, isWhole: boolean): number {
  const value = Number(text);
  const isGood = text.trim() !== "" && (isWhole ? Number.isSafeInteger(value) : Number.isFinite(value));
  if (isGood) return value;
  throw usage(`${name} to be a ${isWhole ? "whole number" : "number"}`, JSON.stringify(text), "such as 16");
}
