import type { Placement } from "../faults.ts";

/** A part of what a run does, and who does it. */
export interface Phase {
  readonly name: PhaseName;
  /** The actor that is struck in it. */
  readonly actor: string;
  /** The visit of the phase that is struck: in one of the first steps, after the first. */
  readonly visit: number;
}

export type PhaseName =
  | "spawn"
  | "data"
  | "forward"
  | "gather"
  | "backward"
  | "reduce"
  | "update"
  | "snapshot"
  | "write"
  | "commit"
  | "shutdown";

/** Every phase, in the order of the table. */
export const phases: readonly Phase[] = [
  { name: "spawn", actor: "rank-1", visit: 1 },
  { name: "data", actor: "feeder", visit: 7 },
  { name: "forward", actor: "rank-1", visit: 3 },
  { name: "gather", actor: "shard-1", visit: 16 },
  { name: "backward", actor: "rank-1", visit: 8 },
  { name: "reduce", actor: "shard-1", visit: 8 },
  { name: "update", actor: "shard-1", visit: 8 },
  { name: "snapshot", actor: "shard-1", visit: 2 },
  { name: "write", actor: "checkpointer", visit: 10 },
  { name: "commit", actor: "checkpointer", visit: 1 },
  { name: "shutdown", actor: "rank-1", visit: 1 },
];

/** The faults of an actor in a phase. */
export interface Fault {
  readonly name: FaultName;
  /** As the table says it. */
  readonly title: string;
  /** Where ranks live in the runs that it is tried in. */
  readonly placements: readonly Placement[];
}

export type FaultName =
  | "refuse"
  | "throw"
  | "reject"
  | "exit"
  | "fill"
  | "end"
  | "block"
  | "hang"
  | "SIGKILL"
  | "SIGSEGV"
  | "SIGABRT"
  | "SIGSTOP";

const everywhere: readonly Placement[] = ["thread", "process"];

/** Every fault, in the order of the table. */
export const faults: readonly Fault[] = [
  { name: "refuse", title: "throws in its handler", placements: ["thread"] },
  { name: "throw", title: "throws, nobody catches it", placements: everywhere },
  { name: "reject", title: "rejects, nobody looks", placements: ["thread"] },
  { name: "exit", title: "process.exit in its thread", placements: ["thread"] },
  { name: "fill", title: "its heap is full", placements: everywhere },
  { name: "end", title: "its thread is terminated", placements: everywhere },
  { name: "block", title: "native code blocks for 0.3 s", placements: ["thread"] },
  { name: "hang", title: "waits for ever", placements: everywhere },
  ...(["SIGKILL", "SIGSEGV", "SIGABRT", "SIGSTOP"] as const).map(
    (name): Fault => ({ name, title: `its process gets ${name}`, placements: ["process"] }),
  ),
];

/** A fault that is to happen once in a run. Plain data. */
export interface Strike {
  readonly actor: string;
  readonly phase: PhaseName;
  readonly visit: number;
  readonly fault: FaultName;
  /** The file that says it has happened. */
  readonly doneFile: string;
}

/** The variable of the environment that holds a run's {@link Strike}, as JSON. */
export const strikeVariable = "TROUPE_STRIKE";

/** One fault in one phase of one run. */
export interface Cell {
  readonly placement: Placement;
  readonly phase: Phase;
  readonly fault: Fault;
}

/** The faults of a table, its rows. */
export function faultsOf(placement: Placement): readonly Fault[] {
  return faults.filter(({ placements }) => placements.includes(placement));
}

/** Every cell of a table that is not empty, row by row. */
export function cellsOf(placement: Placement): Cell[] {
  return faultsOf(placement).flatMap((fault) =>
    phases
      .filter((phase) => !isAtHome(phase) || placement === "thread")
      .map((phase) => ({ placement, phase, fault })),
  );
}

/** Why a table has empty cells, and not all rows. */
export const emptiness: Readonly<Record<Placement, string>> = {
  thread: "a signal would end the program itself (`chaos -- cycles` does that)",
  process:
    "feeder and checkpointer live in the program's process wherever ranks do; rows left out end a thread as those above do, which its process tells in one way",
};

/** Whether the phase's actor is in the program's own process, even if ranks are not. */
function isAtHome({ actor }: Phase): boolean {
  return actor === "feeder" || actor === "checkpointer";
}
