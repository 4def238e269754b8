import { relative } from "node:path";
import type { ErrorReport, SourceFrame } from "../error-report.ts";

/** How much is told of an error. */
export interface ErrorDepth {
  /** Everything: every frame, ours and Node's too, and all causes. Default: one's own frames alone. */
  readonly debug?: boolean;
  /** What only follows from an actor's end, too, each as an event of its own. */
  readonly consequences?: boolean;
}

/** So many of one's own frames are told; what lies further out is known to who wrote it. */
const FRAMES_TOLD = 8;

/**
 * An error for the person who wrote the job: what is wrong, the line of their own source that it happened on, with a mark
 * under the place, where in the model that is, and the lines from which it was called.
 */
export function describeError(error: ErrorReport, { debug = false }: ErrorDepth = {}): string {
  if (debug) return everythingOf(error);
  const place = placeOf(error).map((line) => `  ${line}`);
  return [error.message, ...place, ...describeFrames(framesOf(error))].join("\n");
}

/** @returns the innermost line of the user's source, with a mark under the place, and the lines that called it */
export function describeFrames(frames: readonly SourceFrame[]): string[] {
  const [first, ...callers] = frames.slice(0, FRAMES_TOLD);
  if (first === undefined) return [];
  return [...codeOf(first), ...callers.map((caller) => `  called at ${describeFrame(caller)}`)];
}

/** The lines of one's own source that the first cause has passed, else those of what followed from it. */
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

/** As wide as what stands before a column, tabs kept. */
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
  // The message of one that was relayed is not always in its stack.
  const text = stack === undefined ? message : stack.includes(message) ? stack : `${message}\n${stack}`;
  const lines = [text, ...[...head, ...place].map((line) => `    ${line}`)];
  return cause === undefined ? lines.join("\n") : `${lines.join("\n")}\ncaused by: ${everythingOf(cause)}`;
}
