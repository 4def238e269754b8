import { TroupeError } from "../../errors/index.ts";
import { type Address, describe } from "../protocol/address.ts";
import { type Failure, firstCause, fromFailure } from "../protocol/failure.ts";
import type { Placement } from "../protocol/spawn.ts";

/** `ACTOR_NAME_TAKEN`: another actor of that name lives. */
export function nameTaken(name: string, holder: Address): TroupeError {
  return new TroupeError(
    "ACTOR_NAME_TAKEN",
    {
      where: `spawn ${name}`,
      expected: "a name that no living actor has",
      got: `that of ${describe(holder)}`,
      hint: "stop it first, or choose another",
    },
    { fields: { name } },
  );
}

/** `PROCESS_UNSUPPORTED`: a process was named for an actor that is to live in none. */
export function processWithoutPlacement(name: string, placement: Placement): TroupeError {
  return new TroupeError(
    "PROCESS_UNSUPPORTED",
    {
      where: `spawn ${name}`,
      expected: `no process with placement "${placement}"`,
      got: "one",
      hint: 'leave it out, or use placement "process"',
    },
    { fields: { name, placement } },
  );
}

/** `ACTOR_STUCK`: not even force ends it, because native code in it does not return. */
export function isStuck(address: Address): TroupeError {
  return new TroupeError(
    "ACTOR_STUCK",
    {
      where: `stop ${describe(address)}`,
      expected: "its thread to end when it is made to",
      got: "native code that does not return",
      hint: "end the process; see inspect() for what it was doing",
    },
    { fields: { actor: describe(address) } },
  );
}

/** `SYSTEM_STOPPED`: the system was stopped while the actor was on its way to be started. */
export function startedTooLate(name: string): TroupeError {
  return new TroupeError(
    "SYSTEM_STOPPED",
    {
      where: `spawn ${name}`,
      expected: "a running system",
      got: "one that was stopped before the actor had started",
      hint: "make a new one",
    },
    { fields: { actor: name } },
  );
}

/** `ACTOR_START_TIMEOUT`: it was not started in time, and has been ended. */
export function startTimeout(address: Address, deadlineMs: number): TroupeError {
  return new TroupeError(
    "ACTOR_START_TIMEOUT",
    {
      where: `spawn ${describe(address)}`,
      expected: `its start to finish within ${deadlineMs} ms`,
      got: "no end of it",
      hint: "see what its module does while loading, or raise startDeadlineMs",
    },
    { fields: { actor: describe(address), deadlineMs } },
  );
}

/** `ACTOR_UNHANDLED`: an actor failed, and nobody answers for it. */
export function unhandled(failure: Failure, actor: string): TroupeError {
  const cause = firstCause(failure);
  return new TroupeError(
    "ACTOR_UNHANDLED",
    {
      where: actor,
      expected: "a failure that somebody handles",
      got: `one that nobody does: ${cause.message}`,
      hint: "supervise or watch the actor",
    },
    { fields: { actor }, cause: fromFailure(cause) },
  );
}
