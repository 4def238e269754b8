import { type Address, describe } from "../protocol/address.ts";
import type { Down } from "../protocol/failure.ts";
import type { ActorRecord } from "./actor-record.ts";

/** The actors of a system: those that live, those that have ended but still run something, and how the others ended. */
export class ActorTable {
  readonly #records = new Map<number, ActorRecord>();
  /** The newest incarnation of each name: those before it have ended. */
  readonly #byName = new Map<string, ActorRecord>();
  /** Names of the actors that a supervisor starts again. */
  readonly #supervised = new Set<string>();
  /** Ends of the actors of which nothing runs any more. */
  readonly #ends = new Map<number, Down>();

  /** Adds a new incarnation. */
  enter(record: ActorRecord): void {
    this.#records.set(record.address.uid, record);
    this.#byName.set(record.address.name, record);
    if (record.siblings !== undefined) this.#supervised.add(record.address.name);
  }

  /** Removes an incarnation of which nothing runs any more, and keeps how it ended. */
  leave(record: ActorRecord): void {
    const { address, down } = record;
    this.#ends.set(address.uid, down as Down);
    this.#records.delete(address.uid);
    if (this.#byName.get(address.name) === record) this.#byName.delete(address.name);
  }

  /** Every actor that has not ended, in the order they were started. */
  get living(): readonly ActorRecord[] {
    return this.running.filter(({ down }) => down === undefined);
  }

  /** Every actor of which something still runs, even if it has ended. */
  get running(): readonly ActorRecord[] {
    return [...this.#records.values()];
  }

  /** Finds an actor of which something still runs. */
  record(uid: number): ActorRecord | undefined {
    return this.#records.get(uid);
  }

  /** Finds an actor that has not ended. */
  livingRecord(uid: number): ActorRecord | undefined {
    const record = this.#records.get(uid);
    return record?.down === undefined ? record : undefined;
  }

  /** Finds the actor of this name that has not ended. */
  livingNamed(name: string): ActorRecord | undefined {
    const record = this.#byName.get(name);
    return record?.down === undefined ? record : undefined;
  }

  /** Whether an actor of this name is starting, or its supervisor may restart it. */
  isExpected(name: string): boolean {
    return this.livingNamed(name) !== undefined || this.#supervised.has(name);
  }

  /** Notes that no supervisor starts this actor again. */
  unexpect(name: string): void {
    this.#supervised.delete(name);
  }

  /** Names of the actors that have started and not ended. */
  get names(): readonly string[] {
    return this.living.filter(({ hasStarted }) => hasStarted).map(({ address }) => address.name);
  }

  /** Returns `name#incarnation` of an actor of which something still runs. */
  nameOf(uid: number): string | undefined {
    const record = this.#records.get(uid);
    return record === undefined ? undefined : describe(record.address);
  }

  /** Returns how an actor ended; "unknown" for one that never existed. */
  endOf({ uid, name, incarnation }: Pick<Address, "uid" | "name" | "incarnation">): Down {
    const end = this.#records.get(uid)?.down ?? this.#ends.get(uid);
    return end ?? { actor: name, incarnation, reason: "unknown" };
  }
}
