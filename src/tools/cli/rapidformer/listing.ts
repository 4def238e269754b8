/** A shell script that starts a run, as printed in Rapidformer's documents. */
export interface Listing {
  /** Variables that it exports. */
  readonly environment: Readonly<Record<string, string>>;
  /** Each command with its arguments, in order. */
  readonly commands: readonly (readonly string[])[];
}

const ASSIGNMENT = /^(export\s+)?([A-Za-z_]\w*)=(.*)$/;

/**
 * Reads a listing as it was intended, which a shell would not: in print, comments follow a line's closing backslash,
 * and some backslashes before a flag on the next line are missing. Replaces variables and removes quotes; runs nothing.
 * @param environment - the caller's, for variables that the listing does not set
 */
export function readListing(
  text: string,
  environment: Readonly<Record<string, string | undefined>>,
): Listing {
  const variables: Record<string, string | undefined> = { ...environment };
  const exported: Record<string, string> = {};
  const commands: string[][] = [];
  for (const line of joined(text)) {
    const [, isExported, name = "", value = ""] = ASSIGNMENT.exec(line) ?? [];
    if (name !== "") {
      const [word = ""] = wordsOf(value, variables);
      variables[name] = word;
      if (isExported !== undefined) exported[name] = word;
      continue;
    }
    const words = wordsOf(line, variables);
    if (words.length > 0) commands.push(words);
  }
  return { environment: exported, commands };
}

/** Lines without comments, continued ones joined. */
function joined(text: string): string[] {
  const lines: string[] = [];
  let goesOn = false;
  for (const printed of text.split(/\r?\n/)) {
    const line = withoutComment(printed).trim();
    const bare = line.replace(/\\$/, "").trim();
    if (goesOn || bare.startsWith("--")) lines.push(`${lines.pop() ?? ""} ${bare}`.trim());
    else lines.push(bare);
    goesOn = line.endsWith("\\");
  }
  return lines.filter((line) => line !== "");
}

/** Removes a comment: from a # at the start of a word, outside quotes. */
function withoutComment(line: string): string {
  let quote = "";
  for (const [index, character] of [...line].entries()) {
    if (quote !== "") quote = character === quote ? "" : quote;
    else if (character === "'" || character === '"') quote = character;
    else if (character === "#" && (index === 0 || /[\s\\]/.test([...line][index - 1] ?? "")))
      return [...line].slice(0, index).join("");
  }
  return line;
}

const WORD = /'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)|([^\s'"\\]+)|(\s+)/g;

/** Words of a line, with quotes removed and variables replaced outside single quotes. */
function wordsOf(line: string, variables: Readonly<Record<string, string | undefined>>): string[] {
  const replaced = (text: string) =>
    text.replaceAll(
      /\$(?:\{(\w+)\}|(\w+))/g,
      (_, braced: string, bare: string) => variables[braced ?? bare] ?? "",
    );
  const words: string[] = [];
  let word: string | undefined;
  for (const [, single, double, escaped, plain, blank] of line.matchAll(WORD)) {
    if (blank !== undefined) {
      if (word !== undefined) words.push(word);
      word = undefined;
      continue;
    }
    const part = single ?? (double === undefined ? undefined : replaced(double)) ?? escaped;
    if (part !== undefined) {
      word = `${word ?? ""}${part}`;
      continue;
    }
    // An unquoted variable may be several words, such as the parts of a blend, or none if empty.
    const [first, ...others] = replaced(plain ?? "").split(/\s+/);
    if (word === undefined && first === "" && others.length === 0) continue;
    word = `${word ?? ""}${first ?? ""}`;
    for (const other of others) {
      words.push(word);
      word = other;
    }
  }
  if (word !== undefined) words.push(word);
  return words;
}
