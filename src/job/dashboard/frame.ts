/** Server-sent events of the dashboard: `frame` has the run's changes, `board` every actor's state. Plain JSON; NaN is "NaN". */

/** Changed parts of a run. Each replaces the page's part; a table replaces the end of the page's table. */
export interface Frame {
  /** The server's clock at the time of sending, in milliseconds since 1970. */
  readonly timeMs: number;
  readonly run?: RunPart;
  readonly steps?: TableChange;
  readonly evaluations?: TableChange;
  readonly memory?: TableChange;
  readonly checkpoints?: CheckpointsPart;
  /** Newest last. */
  readonly incidents?: readonly Incident[];
  /** The latest text that the model generated. */
  readonly sample?: { readonly step: number; readonly text: string } | null;
  readonly rollouts?: TableChange;
  /** The latest texts that the model learned from, with their rewards. */
  readonly judged?: JudgedPart | null;
  /** Each actor's last known state, from events alone. */
  readonly actors?: readonly ActorPart[];
}

/** Texts of a round, and their rewards. */
export interface JudgedPart {
  readonly round: number;
  readonly texts: readonly { readonly prompt: string; readonly text: string; readonly reward: number }[];
}

/** A run and its progress. */
export interface RunPart {
  /** "restarting": an actor of the rank group was lost, and no step has completed since. */
  readonly state: "waiting" | "running" | "restarting" | "finished" | "failed" | "silent";
  /** Undefined until it is known. */
  readonly facts?: RunFacts | undefined;
  /** Steps done so far. */
  readonly step: number;
  /** Samples trained on by this run, over all ranks. */
  readonly numSamples: number;
  /** Tokens trained on by this run; 0 if they are not counted. */
  readonly numTokens: number;
  /** The latest loss and held-out loss. */
  readonly lossNats: number;
  readonly evaluationLossNats: number;
  /** Duration of a step, smoothed; NaN before the first. */
  readonly stepMs: number;
  readonly startedAtMs: number;
  /** Time of the last progress. */
  readonly progressAtMs: number;
  readonly endedAtMs?: number | undefined;
  /** Why the run failed. */
  readonly error?: string | undefined;
  /** Restarts of the rank group. */
  readonly numRestarts: number;
}

/** Facts about a run, known when it starts. */
export interface RunFacts {
  readonly job: string;
  readonly numRanks: number;
  readonly mesh: { readonly dp: number; readonly pp: number; readonly tp: number; readonly ep: number };
  readonly zero: number;
  readonly placement: string;
  readonly precision: string;
  readonly seed: number;
  readonly numParameters: number;
  readonly numTrainable: number;
  readonly firstStep: number;
  readonly steps: number;
}

/** A change of a table, by columns: the page keeps its first `numKept` rows and appends these. */
export interface TableChange {
  readonly numKept: number;
  /** All of one length; the first field is `step`, which increases. */
  readonly columns: Readonly<Record<string, readonly number[]>>;
}

/** Checkpoints saved, failed and skipped. */
export interface CheckpointsPart {
  readonly numSaved: number;
  readonly numFailed: number;
  readonly numSkipped: number;
  /** The latest ones, newest last. */
  readonly latest: readonly CheckpointPart[];
}

/** One save. */
export interface CheckpointPart {
  readonly step: number;
  readonly state: "saving" | "saved" | "failed" | "skipped";
  readonly startedAtMs: number;
  readonly writtenBytes?: number | undefined;
  readonly totalBytes?: number | undefined;
  readonly durationMs?: number | undefined;
  readonly path?: string | undefined;
  /** Why it failed or was skipped. */
  readonly reason?: string | undefined;
}

/** An event that the user should notice. */
export interface Incident {
  readonly timeMs: number;
  /** Steps completed when it happened. */
  readonly step: number;
  readonly tone: "plain" | "good" | "bad";
  readonly text: string;
  /** Number of such events in a row. */
  readonly count: number;
  /** Whether the run went back from here and repeats steps. */
  readonly restart: boolean;
}

/** An actor's last known state. */
export interface ActorPart {
  readonly actor: string;
  readonly role: string | undefined;
  readonly incarnation: number;
  readonly state: "started" | "failed" | "stopped";
  readonly sinceMs: number;
}

/** The current state of an actor, read from shared memory, so it is right even if the actor is stuck. */
export interface ActorStatus {
  readonly actor: string;
  /** The actor's role, such as "rank". */
  readonly role?: string;
  readonly incarnation: number;
  readonly pid: number;
  readonly state: string;
  /** Time in this state. */
  readonly ageMs: number;
  readonly handling: string | undefined;
  readonly waitingFor: string | undefined;
  readonly numQueued: number;
  readonly numHandled: number;
  readonly op:
    | { readonly name: string; readonly block: string; readonly sequence: number; readonly ageMs: number }
    | undefined;
  /** The collective that it is in, or was in last. */
  readonly collective: CollectivePart | undefined;
}

/** A collective that an actor has reached. */
export interface CollectivePart {
  readonly name: string;
  readonly group: string;
  readonly sequence: number;
  readonly isWaiting: boolean;
  readonly ageMs: number;
}

/** The status board, and the actors' work since it was last sent. */
export interface BoardFrame {
  readonly timeMs: number;
  /** Every running actor; undefined for a recorded run, which has no board. */
  readonly actors?: readonly ActorStatus[] | undefined;
  /** Completed pieces of work, of traced runs; thinned if there are many. */
  readonly spans?: readonly Span[];
}

/** A piece of an actor's work, in times of the clock of `timeMs`. */
export interface Span {
  readonly actor: string;
  readonly role: string | undefined;
  /** Kind of a message, or an activity. */
  readonly work: string;
  /** Whether the work awaited others at times, leaving the actor free. */
  readonly awaited: boolean;
  readonly beginMs: number;
  readonly endMs: number;
}
