import {
  type ErrorOrigin,
  framesOf,
  originOf,
  ownFrames,
  type StackFrame,
  sourceLine,
} from "../../errors/index.ts";

/** A line of the user's source that an error has passed through. */
export interface SourceFrame extends StackFrame {
  /** The line itself, without its end; undefined where it cannot be read. */
  readonly text?: string;
}

/** An error as plain data. */
export interface ErrorReport {
  /** A code of `errorTable` or of the operating system, where there is one. */
  readonly code?: string;
  readonly message: string;
  /** The actor where it first happened, `name#incarnation`. */
  readonly actor?: string;
  /** The module of the model and the function of the job where it happened. */
  readonly from?: ErrorOrigin;
  /** Lines of the user's source that it has passed through, innermost first; those of libraries are in {@link stack} only. */
  readonly frames?: readonly SourceFrame[];
  /** All frames, as V8 writes them. */
  readonly stack?: string;
  readonly cause?: ErrorReport;
}

/** An error's own data, thrown here or received from another actor. */
export type ReportedError = {
  readonly [Field in keyof Omit<ErrorReport, "frames">]: ErrorReport[Field] | undefined;
} & Pick<ErrorReport, "message">;

const maxCauses = 8;

/** Any thrown value as plain data, with its causes. */
export function reportError(error: unknown, numCauses = 0): ErrorReport {
  if (!(error instanceof Error)) return { message: textOf(error) };
  const { code, fields } = error as { code?: unknown; fields?: { actor?: unknown } };
  const hasCause = error.cause !== undefined && numCauses < maxCauses;
  return composeReport({
    message: error.message,
    stack: error.stack,
    from: originOf(error),
    code: typeof code === "string" ? code : undefined,
    actor: typeof fields?.actor === "string" ? fields.actor : undefined,
    cause: hasCause ? reportError(error.cause, numCauses + 1) : undefined,
  });
}

/** A thrown value that is no Error, as text; not every object can be converted. */
function textOf(thrown: unknown): string {
  try {
    return String(thrown);
  } catch {
    return "a thrown object that has no text";
  }
}

/** Builds a report from an error's data; reads the lines of source that it names. */
export function composeReport({ code, message, actor, from, stack, cause }: ReportedError): ErrorReport {
  const frames = ownFrames(framesOf(stack)).map((frame): SourceFrame => {
    const text = sourceLine(frame);
    return text === undefined ? frame : { ...frame, text };
  });
  return {
    ...(code !== undefined && { code }),
    message,
    ...(actor !== undefined && { actor }),
    ...(from !== undefined && Object.keys(from).length > 0 && { from }),
    ...(frames.length > 0 && { frames }),
    ...(stack !== undefined && { stack }),
    ...(cause !== undefined && { cause }),
  };
}
