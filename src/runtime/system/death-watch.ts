import type { Clock } from "../clock.ts";
import { inspectActor } from "../inspection/inspect-actor.ts";
import type { Endpoint } from "../messaging/endpoint.ts";
import { type Address, describe } from "../protocol/address.ts";
import { ActorDown, type Down, type Failure, fromFailure, toFailure } from "../protocol/failure.ts";
import { type Outgoing, RecordType } from "../protocol/record.ts";
import type { RuntimeEvent } from "../protocol/runtime-event.ts";
import type { StopOptions } from "../protocol/spawn.ts";
import type { ActorRecord } from "./actor-record.ts";
import type { ActorTable } from "./actor-table.ts";
import type { Joiner } from "./joiner.ts";

/** Parts of the system that {@link DeathWatch} uses. */
export interface DeathWatchOptions {
  /** The system's own endpoint. */
  readonly endpoint: Endpoint;
  readonly actors: ActorTable;
  readonly joiner: Joiner;
  readonly clock: Clock;
  /** Sends an actor a record of the runtime's own. */
  sendTo(record: ActorRecord, message: Partial<Outgoing> & Pick<Outgoing, "type">): void;
  report(event: RuntimeEvent): void;
  /** Called for a failure that reaches no supervisor, owner, watcher or asker. */
  onUnhandled(failure: Failure, actor: Address): void;
  stop(record: ActorRecord, options: StopOptions): Promise<void>;
}

/**
 * Decides which actors have ended and why. It records each end once, by the first report of it. Then it notifies watchers and
 * linked actors, stops the actors that this one owned, and escalates a failure that no watcher or supervisor handles.
 */
export class DeathWatch {
  readonly #options: DeathWatchOptions;

  constructor(options: DeathWatchOptions) {
    this.#options = options;
  }

  /** Notifies `watcher` when another actor ends, at once if it has. */
  watch(watcher: ActorRecord, of: Address): void {
    const { actors, joiner } = this.#options;
    const record = actors.livingRecord(of.uid);
    if (record !== undefined) record.watchers.add(watcher.address.uid);
    else joiner.notifyEnd(watcher, { uid: of.uid, down: actors.endOf(of), isSibling: false });
  }

  /** Notifies `watcher` when the first of its siblings ends, at once if one has. */
  watchSiblings(watcher: ActorRecord): void {
    const end = watcher.siblings?.watch(watcher.address.uid);
    if (end !== undefined) this.#options.joiner.notifyEnd(watcher, { ...end, isSibling: true });
  }

  /** Undoes {@link watch}. */
  unwatch(watcher: ActorRecord, of: Address): void {
    this.#options.actors.record(of.uid)?.watchers.delete(watcher.address.uid);
  }

  /** Records that an actor has stopped in order, or is being terminated. */
  stopped(record: ActorRecord, forced = false): void {
    const { name, incarnation } = record.address;
    this.#enter(record, { actor: name, incarnation, reason: "stopped" }, forced);
  }

  failed(record: ActorRecord, cause: Failure): void {
    const { name, incarnation } = record.address;
    this.#enter(record, { actor: name, incarnation, reason: "failed", cause }, false);
  }

  /** Records that nothing of an actor runs any more. If it has not reported its end before, it has failed. */
  exited(record: ActorRecord, error: Error | undefined): void {
    this.#options.endpoint.drain();
    const cause = error ?? new Error("its thread left without being asked to stop");
    const failure = toFailure(cause, describe(record.address));
    this.failed(record, { ...failure, fields: { ...failure.fields, ...this.#lastDoing(record) } });
  }

  #enter(record: ActorRecord, down: Down, forced: boolean): void {
    const { endpoint } = this.#options;
    if (record.down !== undefined) return;
    // Receive what it posted before its end first: that may hold a better report of its end.
    endpoint.drain();
    if (record.down !== undefined) return;
    record.down = down;
    const { actor, incarnation, cause } = down;
    const end = { actor, incarnation };
    this.#options.report(
      cause === undefined
        ? { kind: "actor.stopped", ...end, forced }
        : { kind: "actor.failed", ...end, cause },
    );
    const numNotified = endpoint.ended(record.address.uid, down);
    this.#notifyOthers(record, down);
    record.started.reject(cause === undefined ? new ActorDown(`spawn ${actor}`, down) : fromFailure(cause));
    record.ended.resolve(down);
    this.#stopOwned(record);
    if (cause !== undefined && record.hasStarted && numNotified === 0) this.#escalate(record, cause);
  }

  /** Returns what an actor was doing that ended without a report: its board outlives it, even if its process was killed. */
  #lastDoing(record: ActorRecord): Record<string, unknown> {
    const { actors, clock } = this.#options;
    const { state, pid, handling, op } = inspectActor(record, clock.now(), (uid) => actors.nameOf(uid));
    return state === "stopped" || state === "failed" ? {} : { state, pid, handling, op };
  }

  #notifyOthers(record: ActorRecord, down: Down): void {
    const { actors, joiner } = this.#options;
    const { uid } = record.address;
    const siblings = new Set(record.siblings?.ended({ uid, down }));
    for (const listening of new Set([...record.watchers, ...record.linked.keys(), ...siblings])) {
      const listener = actors.livingRecord(listening);
      if (listener !== undefined)
        joiner.notifyEnd(listener, { uid, down, isSibling: siblings.has(listening) });
    }
  }

  #stopOwned(owner: ActorRecord): void {
    for (const record of this.#options.actors.running.toReversed()) {
      if (record.ownerUid !== owner.address.uid || record.down !== undefined) continue;
      this.#options
        .stop(record, { reason: `${describe(owner.address)} has ended`, drain: false })
        // Nobody waits for it, and the stop of the system throws the same error again.
        .catch((error: Error) => process.emitWarning(error));
    }
  }

  /** Failures of unsupervised, unwatched actors go to their owner, or to `onUnhandled` if they have none. */
  #escalate(record: ActorRecord, cause: Failure): void {
    if (record.siblings !== undefined || record.watchers.size > 0) return;
    if (record.ownerUid === undefined) {
      this.#options.onUnhandled(cause, record.address);
      return;
    }
    const owner = this.#options.actors.livingRecord(record.ownerUid);
    if (owner !== undefined) this.#options.sendTo(owner, { type: RecordType.childFailed, body: cause });
  }
}
