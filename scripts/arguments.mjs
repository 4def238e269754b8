// The arguments of a script: what it does not know is refused, and --help says what there is.
import { parseArgs } from "node:util";

/**
 * Reads this process's arguments. `--help` prints the usage and ends the process with 0; an option that is not known, or
 * more words than it takes, end it with 2 and a sentence on stderr, before anything else is done.
 * @template {import("node:util").ParseArgsOptionsConfig} Options
 * @param {string} usage - the command line, and a line for each option
 * @param {Options} options
 * @param {number} [maxWords] - arguments that are no options, at most
 * @returns {ReturnType<typeof parseArgs<{ options: Options, allowPositionals: true, strict: true }>>}
 */
export function readArguments(usage, options, maxWords = 0) {
  if (process.argv.slice(2).some((argument) => argument === "--help" || argument === "-h")) {
    process.stdout.write(`${usage.trim()}\n`);
    process.exit(0);
  }
  try {
    const parsed = parseArgs({ options, allowPositionals: true, strict: true });
    const { positionals } = parsed;
    if (positionals.length > maxWords)
      refuse(
        usage,
        `${maxWords === 0 ? "no" : `at most ${maxWords}`} words`,
        positionals.slice(maxWords).join(" "),
      );
    return parsed;
  } catch (error) {
    const [what = ""] = /** @type {Error} */ (error).message.split(". ");
    return refuse(usage, "options that there are", what.replace(/^U/, "u"));
  }
}

/**
 * Reads an option's value as a number from 0 on; anything else ends the process as `refuse` does.
 * @param {string} usage
 * @param {string} option - its name
 * @param {string} given
 */
export function numberOf(usage, option, given) {
  const number = Number(given);
  if (given.trim() === "" || !(number >= 0)) return refuse(usage, `--${option} to be a number`, `"${given}"`);
  return number;
}

/**
 * Reads an option's value as a whole number from 1 on; anything else ends the process as `refuse` does.
 * @param {string} usage
 * @param {string} option - its name
 * @param {string} given
 */
export function countOf(usage, option, given) {
  const count = Number(given);
  if (!Number.isSafeInteger(count) || count < 1)
    return refuse(usage, `--${option} to be a whole number from 1 on`, `"${given}"`);
  return count;
}

/**
 * Ends the process with 2: `[arguments] expected X, got Y`, and the usage.
 * @param {string} usage
 * @param {string} expected
 * @param {string} got
 * @returns {never}
 */
export function refuse(usage, expected, got) {
  process.stderr.write(`[arguments] expected ${expected}, got ${got}\n\n${usage.trim()}\n`);
  process.exit(2);
}
