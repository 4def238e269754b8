import { TroupeError, whatWasMeant } from "../../errors/index.ts";
import { type Address, describe } from "../protocol/address.ts";
import { type Failure, firstCause, fromFailure } from "../protocol/failure.ts";
import type { Placement } from "../protocol/spawn.ts";

/** Makes `ACTOR_NAME_TAKEN`: a living actor has this name. */
export function nameTaken(name: string, holder: Address): TroupeError {
  return new TroupeError("ACTOR_NAME_TAKEN", {
    where: `spawn ${name}`,
    expected: "a name that no living actor has",
    got: `that of ${describe(holder)}`,
    hint: "stop it first, or choose another",
    fields: { name },
  });
}

/** Makes `ACTOR_UNKNOWN`: no actor has this name, and no supervisor starts one. */
export function nameUnknown(name: string, names: readonly string[]): TroupeError {
  return new TroupeError("ACTOR_UNKNOWN", {
    where: `find ${name}`,
    expected: "the name of a living actor",
    got: name,
    hint: whatWasMeant(name, names),
    fields: { name },
  });
}

/** Makes `PROCESS_UNSUPPORTED`: a process, or a host for it, was named for an actor that has no process of its own. */
export function withoutProcess(
  name: string,
  placement: Placement,
  named: "process" | "host" = "process",
): TroupeError {
  return new TroupeError("PROCESS_UNSUPPORTED", {
    where: `spawn ${name}`,
    expected: `no ${named} with placement "${placement}"`,
    got: "one",
    hint: 'leave it out, or use placement "process"',
    fields: { name, placement },
  });
}

/** Makes `HOST_MISSING`: a host was named that the system does not have. */
export function noSuchHost(name: string, host: number, count: number): TroupeError {
  return new TroupeError("HOST_MISSING", {
    where: `spawn ${name}`,
    expected: count === 1 ? "host 0, the only one" : `one of hosts 0 to ${count - 1}`,
    got: String(host),
    hint: "the system's option hosts says how many there are",
    fields: { name, host },
  });
}

/** Makes `ACTOR_STUCK`: termination does not end it, because native code does not return. */
export function isStuck(address: Address): TroupeError {
  return new TroupeError("ACTOR_STUCK", {
    where: `stop ${describe(address)}`,
    expected: "its thread to end when it is made to",
    got: "native code that does not return",
    hint: "end the process; see inspect() for what it was doing",
    fields: { actor: describe(address) },
  });
}

/** Makes `SYSTEM_STOPPED`: the system was stopped before the actor had started. */
export function startedTooLate(name: string): TroupeError {
  return new TroupeError("SYSTEM_STOPPED", {
    where: `spawn ${name}`,
    expected: "a running system",
    got: "one that was stopped before the actor had started",
    hint: "make a new one",
    fields: { actor: name },
  });
}

/** Makes `ACTOR_START_TIMEOUT`: the actor did not start in time and has been terminated. */
export function startTimeout(address: Address, deadlineMs: number): TroupeError {
  return new TroupeError("ACTOR_START_TIMEOUT", {
    where: `spawn ${describe(address)}`,
    expected: `its start to finish within ${deadlineMs} ms`,
    got: "a start that has not finished",
    hint: "see what its module does while loading, or raise startDeadlineMs",
    fields: { actor: describe(address), deadlineMs },
  });
}

/** Makes `ACTOR_UNHANDLED`: an actor failed, and no other handles the failure. */
export function unhandled(failure: Failure, actor: string): TroupeError {
  const cause = firstCause(failure);
  return new TroupeError("ACTOR_UNHANDLED", {
    where: actor,
    expected: "a supervisor, owner or watcher that handles its failure",
    got: `none for: ${cause.message}`,
    hint: "supervise or watch the actor",
    fields: { actor },
    cause: fromFailure(cause),
  });
}
