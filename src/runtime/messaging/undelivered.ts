import { TroupeError } from "../../errors/index.ts";
import { type Address, describe } from "../protocol/address.ts";
import type { DeadLetterReason } from "../protocol/dead-letter.ts";
import { ActorDown, fromFailure, toFailure } from "../protocol/failure.ts";
import { type Envelope, isMessage, type Outgoing, RecordType } from "../protocol/record.ts";
import type { Asks } from "./asks.ts";
import type { Connection, Lost } from "./connection.ts";
import type { LossListener } from "./connections.ts";
import type { Outbox } from "./outbox.ts";
import type { Delivery, Resident } from "./resident.ts";
import type { Watches } from "./watches.ts";

/** The endpoint that the messages came to or from. */
export interface ReportingEndpoint {
  readonly address: Address;
  readonly asks: Asks;
  readonly watches: Watches;
  readonly outbox: Outbox;
}

/** Turns each message that does not arrive into one dead letter, and rejects the question if it was one. */
export class Undelivered implements LossListener {
  readonly #endpoint: ReportingEndpoint;
  readonly #resident: Pick<Resident, "onDeadLetter">;

  constructor(endpoint: ReportingEndpoint, resident: Pick<Resident, "onDeadLetter">) {
    this.#endpoint = endpoint;
    this.#resident = resident;
  }

  /** The receiver ended before it took the message, or the message cannot be copied. */
  lost(connection: Connection, { message, error }: Lost): void {
    if (error !== undefined) this.#unsendable(connection, message, error);
    else this.#report(this.#reasonFor(connection.peer), this.#endpoint.address, connection.peer, message);
  }

  /** Telemetry messages were dropped because their lane was full. */
  dropped(connection: Connection, count: number): void {
    const message = { kind: "telemetry", body: undefined };
    this.#report("Overflow", this.#endpoint.address, connection.peer, message, count);
  }

  /** The receiver had ended before the message was sent. */
  unreachable(to: Address, message: Outgoing): void {
    const down = this.#endpoint.watches.endOf(to.uid);
    if (down !== undefined && message.type === RecordType.ask) {
      const error = new ActorDown(`${describe(to)}.${message.kind}`, down);
      this.#endpoint.asks.settle(message.id)?.settle.reject(error);
    }
    this.#report(this.#reasonFor(to), this.#endpoint.address, to, message);
  }

  /** This actor got the message and cannot handle it. */
  refused(delivery: Delivery, reason: DeadLetterReason): void {
    this.#report(reason, delivery.from.peer, this.#endpoint.address, delivery);
  }

  /** An answer arrived after its question had expired. */
  late(from: Connection, answer: Envelope): void {
    this.#report("Expired", from.peer, this.#endpoint.address, answer);
  }

  /** A packet arrived that cannot be read. */
  garbled(from: Connection): void {
    this.#report("Undeserialisable", from.peer, this.#endpoint.address, { kind: "unknown", body: undefined });
  }

  #unsendable(connection: Connection, message: Envelope, cause: unknown): void {
    const failure = toFailure(unsendable(message.kind, cause));
    const { asks, outbox } = this.#endpoint;
    // The id of an answer is the asker's.
    if (isMessage(message.type)) asks.settle(message.id)?.settle.reject(fromFailure(failure));
    else outbox.reply(connection, RecordType.failure, message.id, message.kind, failure);
    this.#report("Undeserialisable", this.#endpoint.address, connection.peer, message);
  }

  #reasonFor(receiver: Address): DeadLetterReason {
    return this.#endpoint.watches.endOf(receiver.uid)?.reason === "unknown" ? "NoSuchActor" : "Stopped";
  }

  #report(
    reason: DeadLetterReason,
    from: Address,
    to: Address,
    message: Pick<Envelope, "kind" | "body">,
    count = 1,
  ): void {
    const letter = { reason, messageKind: message.kind, from: describe(from), to: describe(to), count };
    this.#resident.onDeadLetter(letter, message.body);
  }
}

function unsendable(kind: string, cause: unknown): TroupeError {
  return new TroupeError("MESSAGE_UNSENDABLE", {
    where: `send ${kind}`,
    expected: "plain data",
    got: `a value that cannot be sent: ${cause instanceof Error ? cause.message : String(cause)}`,
    hint: "send no functions, live handles or class instances without a codec",
    fields: { kind },
    cause,
  });
}
