import { hrtime } from "node:process";

/** A call into a user's code that has not ended. */
export interface UserCall {
  /** The name of the function: "loss of the job", 'batch("train", 0, 8) of the job\'s data'. */
  readonly what: string;
  /** When the call began, or when a call within it ended, in milliseconds of the machine's monotonic clock. */
  readonly sinceMs: number;
  /** Whether it has returned a promise, so that the thread is free meanwhile. */
  readonly isPending: boolean;
}

/** Receives what a thread is waiting for now; undefined where it waits for no code of a user's. */
export type ShowUserCall = (call: UserCall | undefined) => void;

/** This thread's calls: those that have not returned, the innermost last, and those that returned a promise, the oldest first. */
const running: string[] = [];
const pending = new Set<UserCall>();
let show: ShowUserCall | undefined;

/** Shows this thread's calls into users' code from now on. */
export function showUserCalls(to: ShowUserCall): void {
  show = to;
}

/**
 * Calls a function of a user's, or imports a module of theirs. All such calls go through here: until a call has ended, and its promise
 * has settled, the watchdog knows what the thread waits for, and reports it in time.
 * @param what - as {@link UserCall} has it
 * @returns what `body` does; a promise that settles as its promise does
 * @throws what `body` throws
 */
export function callUser<T>(what: string, body: () => T): T {
  running.push(what);
  present();
  let result: T;
  try {
    result = body();
  } finally {
    running.pop();
    present();
  }
  return isThenable(result) ? (settled(what, result) as T) : result;
}

async function settled(what: string, result: PromiseLike<unknown>): Promise<unknown> {
  const call = { what, sinceMs: nowMs(), isPending: true };
  pending.add(call);
  present();
  try {
    return await result;
  } finally {
    pending.delete(call);
    present();
  }
}

function present(): void {
  if (show === undefined) return;
  const what = running.at(-1);
  if (what !== undefined) show({ what, sinceMs: nowMs(), isPending: false });
  else show(pending.values().next().value);
}

function nowMs(): number {
  const time = hrtime();
  return time[0] * 1e3 + time[1] / 1e6;
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === "function";
}

/** Where of a job an error comes from, beside the lines of source. Plain data, so that it travels with the error. */
export interface ErrorOrigin {
  /** Path of the module of the model that was computing, such as `layers.2.attn.q`. */
  readonly module?: string;
  /** The function of a job or a dataset that was called, such as `loss`. */
  readonly call?: string;
}

const origins = new WeakMap<object, ErrorOrigin>();

/** Keeps with an error where it comes from; what is known of that already stays, since it was nearer. */
export function noteOrigin(error: unknown, origin: ErrorOrigin): void {
  if (typeof error === "object" && error !== null) origins.set(error, { ...origin, ...origins.get(error) });
}

/** @returns what is known of where an error comes from */
export function originOf(error: unknown): ErrorOrigin {
  return typeof error === "object" && error !== null ? (origins.get(error) ?? {}) : {};
}
