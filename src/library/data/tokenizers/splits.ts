import { LinearPattern } from "../../../errors/untrusted/index.ts";

/** A pre-tokenizer of a `tokenizer.json` that cuts texts. Plain data. */
export interface SplitJson {
  readonly type?: string;
  readonly pretokenizers?: readonly SplitJson[];
  readonly behavior?: string | null;
  readonly invert?: boolean;
  readonly individual_digits?: boolean;
}

const word = String.raw`\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}`;

/** Patterns of the pre-tokenizers that {@link asSplit} replaces; `RegExp` matches each in linear time. */
export const splitPatterns = {
  Whitespace: String.raw`[${word}]+|[^${word}\p{White_Space}]+`,
  WhitespaceSplit: String.raw`\p{White_Space}+`,
  Digits: String.raw`\p{N}`,
  Punctuation: String.raw`[\p{P}\x21-\x2F\x3A-\x40\x5B-\x60\x7B-\x7E]`,
};

/**
 * Replaces pre-tokenizers by Split as Hugging Face's tokenizers define them: the package's own cut by ASCII's or JavaScript's
 * classes of characters, and know one behavior.
 */
export function asSplit(json: SplitJson | null): SplitJson | null {
  const split = (source: string, behavior: string, invert = false) => ({
    ...{ type: "Split", pattern: { Regex: source }, behavior, invert },
  });
  switch (json?.type) {
    case "Sequence":
      return { ...json, pretokenizers: (json.pretokenizers ?? []).map((each) => asSplit(each) as SplitJson) };
    case "Whitespace":
      return split(splitPatterns.Whitespace, "Removed", true);
    case "WhitespaceSplit":
      return split(splitPatterns.WhitespaceSplit, "Removed");
    case "Digits":
      return split(splitPatterns.Digits, json.individual_digits === true ? "Isolated" : "Contiguous");
    case "Punctuation":
      return split(splitPatterns.Punctuation, json.behavior ?? "Isolated");
    default:
      return json;
  }
}

/** Whether a part joins the one before it, by whether each is a match, for each behavior of Split. */
const joinings: Readonly<Record<string, (isMatch: boolean, wasMatch: boolean) => boolean>> = {
  isolated: () => false,
  removed: () => false,
  mergedwithprevious: (isMatch, wasMatch) => isMatch && !wasMatch,
  mergedwithnext: (isMatch, wasMatch) => !isMatch && wasMatch,
  contiguous: (isMatch, wasMatch) => isMatch === wasMatch,
};

/** Whether Split has a behavior; an absent one is Isolated. */
export function isBehavior(behavior: unknown): boolean {
  return (
    behavior == null || (typeof behavior === "string" && Object.hasOwn(joinings, behavior.toLowerCase()))
  );
}

/** Cuts a text by a pattern as Split of Hugging Face's tokenizers does; `invert` takes what is no match for one. */
export function splitText(
  text: string,
  pattern: RegExp | LinearPattern,
  { behavior, invert = false }: SplitJson,
): string[] {
  const kind = behavior?.toLowerCase() ?? "isolated";
  const parts = cut(text, pattern);
  // Nearly all tokenizers' way.
  if (kind === "isolated") return parts.filter((part) => part !== "");
  const joins = joinings[kind] as (typeof joinings)[string];
  const made: string[] = [];
  let wasMatch: boolean | undefined;
  for (const [index, part] of parts.entries()) {
    const isOutside = index % 2 === 0;
    const isMatch = isOutside === invert;
    if ((isOutside && part === "") || (isMatch && kind === "removed")) continue;
    if (wasMatch !== undefined && joins(isMatch, wasMatch)) made.push((made.pop() as string) + part);
    else made.push(part);
    wasMatch = isMatch;
  }
  return made.filter((part) => part !== "");
}

/** As {@link LinearPattern.cut}. */
function cut(text: string, pattern: RegExp | LinearPattern): string[] {
  if (pattern instanceof LinearPattern) return pattern.cut(text);
  const parts: string[] = [];
  let from = 0;
  for (const match of text.matchAll(pattern)) {
    parts.push(text.slice(from, match.index), match[0]);
    from = match.index + match[0].length;
  }
  parts.push(text.slice(from));
  return parts;
}
