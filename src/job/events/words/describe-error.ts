import { relative } from "node:path";
import type { ErrorReport, SourceFrame } from "../error-report.ts";

/** How much of an error is shown. */
export interface ErrorDepth {
  /** Every frame, also ours and Node's, and all causes. Default: the user's own frames only. */
  readonly debug?: boolean;
  /** Also errors that only follow from an actor's end, each as an event of its own. */
  readonly consequences?: boolean;
}

/** The most frames of the user's that are shown; the author knows those further out. */
const MAX_FRAMES = 8;

/**
 * Describes an error for the author of the job: the mistake, the line of their own source where it happened, with a
 * mark under the column, the place in the model, and the lines that called it.
 */
export function describeError(error: ErrorReport, { debug = false }: ErrorDepth = {}): string {
  if (debug) return everythingOf(error);
  const place = placeOf(error).map((line) => `  ${line}`);
  return [error.message, ...place, ...describeFrames(framesOf(error))].join("\n");
}

/** Returns the innermost line of the user's source, with a mark under the column, and the lines that called it. */
export function describeFrames(frames: readonly SourceFrame[]): string[] {
  const [first, ...callers] = frames.slice(0, MAX_FRAMES);
  if (first === undefined) return [];
  return [...codeOf(first), ...callers.map((caller) => `  called at ${describeFrame(caller)}`)];
}

/** Lines of the user's source in the first cause, else in the errors that followed from it. */
function framesOf({ frames = [], cause }: ErrorReport): readonly SourceFrame[] {
  const first = cause === undefined ? [] : framesOf(cause);
  return first.length > 0 ? first : frames;
}

function placeOf({ from, actor, cause }: ErrorReport): string[] {
  const { module, call } = from ?? cause?.from ?? {};
  const parts = [
    ...(call === undefined ? [] : [`in the job's ${call}`]),
    ...(module === undefined ? [] : [module === "" ? "in the model's own forward" : `in module ${module}`]),
  ];
  if (parts.length === 0) return [];
  return [[...parts, ...(actor === undefined ? [] : [`on ${actor.replace(/#.*/, "")}`])].join(", ")];
}

function codeOf(frame: SourceFrame): string[] {
  const { text, line, column } = frame;
  const head = `  at ${describeFrame(frame)}`;
  if (text === undefined) return [head];
  const number = `  ${line} | `;
  const caret = column === undefined ? [] : [`${" ".repeat(number.length - 2)}| ${before(text, column)}^`];
  return [head, `${number}${text}`, ...caret];
}

/** Blanks up to a column, tabs kept. */
function before(text: string, column: number): string {
  return text.slice(0, column - 1).replaceAll(/[^\t]/g, " ");
}

function describeFrame({ file, line, column, call }: SourceFrame): string {
  const path = relative(process.cwd(), file);
  const shown = path === "" || path.startsWith("..") ? file : path;
  return `${shown}:${line}${column === undefined ? "" : `:${column}`}${call === undefined ? "" : ` (${call})`}`;
}

function everythingOf(error: ErrorReport): string {
  const { code, message, actor, from, stack, cause } = error;
  const place = placeOf({ message, ...(from && { from }), ...(actor !== undefined && { actor }) });
  const head = code === undefined ? [] : [`code ${code}`];
  // The stack of a relayed error may lack its message.
  const text = stack === undefined ? message : stack.includes(message) ? stack : `${message}\n${stack}`;
  const lines = [text, ...[...head, ...place].map((line) => `    ${line}`)];
  return cause === undefined ? lines.join("\n") : `${lines.join("\n")}\ncaused by: ${everythingOf(cause)}`;
}
