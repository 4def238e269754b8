import { TroupeError } from "../../../errors/index.ts";
import type { EventKind, EventOf, TroupeEvent } from "../event.ts";
import { checkKinds } from "../event-kinds.ts";

/** Thins out the events of one kind: every n-th, or one in so many milliseconds; always the first. */
export type Sampling = { readonly every: number } | { readonly everyMs: number };

/** A selection of events. */
export interface EventSelection<Kind extends EventKind = EventKind> {
  /** Default: all. */
  readonly kinds?: readonly Kind[];
  /** By kind; kinds not named here are not thinned out. */
  readonly sample?: { readonly [K in Kind]?: Sampling };
}

/**
 * Makes a predicate for events of some kinds, for `filter` of an array or of rxjs:
 * `events$.pipe(filter(ofKind("step.finished")))`
 * @throws {TroupeError} `OPTION` for an unknown kind
 */
export function ofKind<Kind extends EventKind>(
  ...kinds: readonly Kind[]
): (event: TroupeEvent) => event is EventOf<Kind> {
  checkKinds("events", kinds);
  const wanted: ReadonlySet<EventKind> = new Set(kinds);
  return (event): event is EventOf<Kind> => wanted.has(event.kind);
}

/**
 * Makes a predicate that must be called once for each event in order, and returns whether that event is selected.
 * @throws {TroupeError} `OPTION` for an unknown kind, an invalid sampling, or one of a kind that is not selected
 */
export function selector<Kind extends EventKind>({
  kinds,
  sample = {},
}: EventSelection<Kind>): (event: TroupeEvent) => event is EventOf<Kind> {
  const isWanted: (event: TroupeEvent) => boolean = kinds === undefined ? () => true : ofKind(...kinds);
  const samplers = new Map<EventKind, Sampler>();
  for (const [kind, sampling] of Object.entries<Sampling | undefined>(sample)) {
    if (sampling === undefined) continue;
    if (kinds !== undefined && !kinds.includes(kind as Kind))
      throw optionError(`sample["${kind}"]`, "of one of `kinds`", kind, "name it there too");
    samplers.set(kind as EventKind, samplerOf(kind, sampling));
  }
  return (event): event is EventOf<Kind> =>
    isWanted(event) && (samplers.get(event.kind)?.(event.timeMs) ?? true);
}

type Sampler = (timeMs: number) => boolean;

function samplerOf(kind: string, sampling: Sampling): Sampler {
  if ("every" in sampling) {
    const { every } = sampling;
    if (!Number.isSafeInteger(every) || every < 1)
      throw optionError(`sample["${kind}"].every`, "a whole number ≥ 1", every, "1 takes all");
    let numSeen = 0;
    return () => numSeen++ % every === 0;
  }
  const { everyMs } = sampling;
  if (!(everyMs > 0 && Number.isFinite(everyMs)))
    throw optionError(`sample["${kind}"].everyMs`, "> 0", everyMs, "leave it out to take all");
  let takenAtMs = Number.NEGATIVE_INFINITY;
  return (timeMs) => {
    if (timeMs - takenAtMs < everyMs) return false;
    takenAtMs = timeMs;
    return true;
  };
}

/** The error for invalid options of `events()`. */
export function optionError(option: string, expected: string, got: unknown, advice: string): TroupeError {
  return new TroupeError("OPTION", {
    where: "events",
    expected: `${option} to be ${expected}`,
    got: `${got}`,
    hint: advice,
  });
}
