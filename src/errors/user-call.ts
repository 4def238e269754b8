import { hrtime } from "node:process";

/** A call of a user's function that has not ended. */
export interface UserCall {
  /** The name of the function: "loss of the job", 'batch("train", 0, 8) of the job\'s data'. */
  readonly what: string;
  /** When the call began, or when the last call inside it ended, in milliseconds of the machine's monotonic clock. */
  readonly sinceMs: number;
  /** Whether it has returned a promise, which leaves the thread free. */
  readonly isPending: boolean;
}

/** Receives the call that a thread is waiting for; undefined if it waits for none. */
export type ShowUserCall = (call: UserCall | undefined) => void;

/** This thread's open calls: those that have not returned, innermost last, and those that returned a promise, oldest first. */
const running: string[] = [];
const pending = new Set<UserCall>();
let show: ShowUserCall | undefined;

/** Reports this thread's calls of users' functions to `to` from now on. */
export function showUserCalls(to: ShowUserCall): void {
  show = to;
}

/**
 * Calls a user's function, or imports a user's module. All such calls go through here, so that the watchdog knows what the
 * thread waits for until the call has ended and its promise has settled.
 * @param what - name of the function, as in {@link UserCall.what}
 * @returns the result of `body`; for a promise, one that settles in the same way
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

/** Whether a value is a promise, or acts as one. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
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
