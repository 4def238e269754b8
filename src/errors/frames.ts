import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** One line of an error's stack. Plain data. */
export interface StackFrame {
  /** Path of the file, or its URL if it is not a file. */
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** From 1; undefined where only the line is known. */
  readonly column?: number;
  /** The function; undefined at the top of a module. */
  readonly call?: string;
}

/**
 * Stack frames that an error keeps in a thread that runs users' code: each module of a model adds several of ours between theirs.
 */
export const FRAMES_KEPT = 200;

// This package's sources, or their compiled files, and its command.
const OURS = ["../", "../../bin/"].map((folder) => fileURLToPath(new URL(folder, import.meta.url)));

/**
 * Parses an error's stack as V8 writes it, innermost frame first. If a source could not be compiled, the first frame is the
 * place of the mistake, which Node writes above the stack.
 */
export function framesOf(stack: string | undefined): StackFrame[] {
  if (stack === undefined) return [];
  const frames = stack.split("\n").flatMap((line) => frameOf(line) ?? []);
  const uncompiled = compilationFrame(stack);
  return uncompiled === undefined ? frames : [uncompiled, ...frames];
}

/** Keeps the frames in the user's own sources: none of this package, of other packages or of Node. */
export function ownFrames(frames: readonly StackFrame[]): StackFrame[] {
  return frames.filter(({ file }) => !file.startsWith("node:") && !isForeign(file));
}

/** Removes from a stack the frames that {@link ownFrames} drops. */
export function ownStack(stack: string): string {
  const isOwn = (line: string) => {
    const frame = frameOf(line);
    return frame === undefined ? !/^ {4}at /.test(line) : ownFrames([frame]).length > 0;
  };
  return stack.split("\n").filter(isOwn).join("\n");
}

/** Reads the line of source that a frame points to, without its end; undefined where the file cannot be read. */
export function sourceLine({ file, line }: StackFrame): string | undefined {
  try {
    return readFileSync(file, "utf8").split(/\r?\n/)[line - 1];
  } catch {
    return undefined;
  }
}

function isForeign(file: string): boolean {
  return OURS.some((folder) => file.startsWith(folder)) || /[\\/]node_modules[\\/]/.test(file);
}

// Folders may have parentheses: only a line that ends with one has its place in them. The place of an eval is inside of another.
const FRAME =
  /^ {4}at (?!.*\(eval at )(?:async )?(?:(?<call>.*?) \((?=.*\)$))?(?<file>\S.*?):(?<line>\d+)(?::(?<column>\d+))?\)?$/;

function frameOf(text: string): StackFrame | undefined {
  const { call, file, line, column } = FRAME.exec(text)?.groups ?? {};
  if (file === undefined) return undefined;
  const named = call === undefined ? undefined : nameOf(call);
  return {
    file: pathOf(file),
    line: Number(line),
    ...(column !== undefined && { column: Number(column) }),
    ...(named !== undefined && { call: named }),
  };
}

/** Turns "Object.loss" into "loss", "Net.forward [as run]" into "Net.forward"; an anonymous function has no name. */
function nameOf(call: string): string | undefined {
  const name = call.replace(/ \[as .*\]$/, "").replace(/^Object\./, "");
  return name === "<anonymous>" ? undefined : name;
}

/** Parses the head that Node puts before the stack: the file with its line, lines of source, and carets under the mistake. */
function compilationFrame(stack: string): StackFrame | undefined {
  const [head = "", ...lines] = stack.split("\n", 12);
  const place = /^(?<file>(?:file:\/\/|[\\/]|[A-Za-z]:\\).*):(?<line>\d+)$/.exec(head)?.groups;
  if (place === undefined) return undefined;
  const carets = lines.find((line) => /^\s*\^+\s*$/.test(line));
  return {
    file: pathOf(place.file ?? ""),
    line: Number(place.line),
    ...(carets !== undefined && { column: carets.indexOf("^") + 1 }),
  };
}

function pathOf(file: string): string {
  if (!file.startsWith("file:")) return file;
  try {
    return fileURLToPath(file.replace(/[?#].*$/, ""));
  } catch {
    return file;
  }
}
