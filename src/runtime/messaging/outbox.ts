import { TroupeError } from "../../errors/index.ts";
import type { Clock } from "../clock.ts";
import { type Address, describe } from "../protocol/address.ts";
import { toFailure } from "../protocol/failure.ts";
import { laneIndex, laneOf } from "../protocol/lane.ts";
import { blankRecord, type Outgoing, RecordType } from "../protocol/record.ts";
import type { MessagingSettings } from "../protocol/settings.ts";
import { type CodecSet, deepFreeze } from "../transport/codec.ts";
import type { AskOptions, Sender, TellOptions } from "./actor-ref.ts";
import type { Asks, Settle } from "./asks.ts";
import type { Connection } from "./connection.ts";
import type { Connections } from "./connections.ts";
import type { Delivery } from "./resident.ts";
import type { Tracer } from "./tracer.ts";

/** Parts of an {@link Outbox}. */
export interface OutboxOptions {
  readonly codecs: CodecSet;
  readonly settings: MessagingSettings;
  /** Undefined where tracing is off. */
  readonly tracer: Tracer | undefined;
}

/** The endpoint that an outbox sends from. */
export interface SendingEndpoint {
  readonly address: Address;
  readonly clock: Clock;
  readonly asks: Asks;
  readonly connections: Connections;
  /** As `Endpoint.connect`. */
  connect(to: Address): Connection | undefined;
  /** Reports a message to an actor that has ended. */
  unreachable(to: Address, message: Outgoing): void;
  /** As `Endpoint.blockUntil`. */
  blockUntil(done: () => boolean, deadlineMs: number): boolean;
}

/** Sends all that an actor sends: messages, which may wait for credit of their lane, and answers and records, which never do. */
export class Outbox implements Sender {
  readonly #endpoint: SendingEndpoint;
  readonly #codecs: CodecSet;
  readonly #settings: MessagingSettings;
  readonly #tracer: Tracer | undefined;

  constructor(endpoint: SendingEndpoint, { codecs, settings, tracer }: OutboxOptions) {
    this.#endpoint = endpoint;
    this.#codecs = codecs;
    this.#settings = settings;
    this.#tracer = tracer;
  }

  tell(to: Address, kind: string, message: unknown, options?: TellOptions): boolean {
    const { lazy } = options ?? {};
    return this.#send(to, this.#message(to, RecordType.tell, 0, kind, 0, message, options), lazy);
  }

  ask(to: Address, kind: string, message: unknown, options: AskOptions): Promise<unknown> {
    const deadlineMs = this.#endpoint.clock.now() + options.deadlineMs;
    return new Promise((resolve, reject) =>
      this.openAsk(to, kind, message, options, deadlineMs, { resolve, reject }),
    );
  }

  /** Sends a question whose answer goes to `settle`. It expires at `deadlineMs` of this clock. */
  openAsk(
    to: Address,
    kind: string,
    message: unknown,
    options: AskOptions,
    deadlineMs: number,
    settle: Settle,
  ): void {
    checkDeadline(`ask ${describe(to)}.${kind}`, options.deadlineMs);
    const { asks } = this.#endpoint;
    const id = asks.enter({ target: to, kind, deadlineMs, allowedMs: options.deadlineMs, settle });
    this.#send(to, this.#message(to, RecordType.ask, id, kind, deadlineMs, message, options), options.lazy);
  }

  async ready(to: Address): Promise<void> {
    await this.#endpoint.connections.get(to.uid)?.ready();
  }

  /** Sends plain data by the telemetry lane. */
  emit(to: Connection, type: RecordType, event: unknown): void {
    const body = this.#codecs.encode(event);
    const isEncoded = body !== event;
    to.send({ ...blankRecord, type, lane: laneIndex.telemetry, kind: "telemetry", body, isEncoded });
    this.#endpoint.connections.markDirty(to);
  }

  /** Answers a question. */
  answer({ from, id, kind }: Delivery, answer: unknown): void {
    this.reply(from, RecordType.answer, id, kind, answer);
  }

  answerFailure({ from, id, kind }: Delivery, error: unknown): void {
    const failure = toFailure(error, describe(this.#endpoint.address));
    this.reply(from, RecordType.failure, id, kind, failure);
  }

  /** Sends an answer: never limited, but counted, so that a lost one is noticed. */
  reply(to: Connection, type: RecordType, id: number, kind: string, answer: unknown): void {
    const body = this.#codecs.encode(answer);
    to.send({ ...blankRecord, type, id, kind, body, isEncoded: body !== answer });
    this.#endpoint.connections.markDirty(to);
  }

  /** Sends one of the runtime's own records, plain data; does nothing if `to` is undefined because its actor has ended. */
  sendRecord(
    to: Connection | undefined,
    record: Partial<Outgoing> & Pick<Outgoing, "type">,
    urgent = false,
  ): void {
    if (to === undefined) return;
    to.sendRecord({ ...blankRecord, ...record }, urgent);
    this.#endpoint.connections.markDirty(to);
  }

  #message(
    to: Address,
    type: RecordType,
    id: number,
    kind: string,
    deadlineMs: number,
    message: unknown,
    options: TellOptions | undefined,
  ): Outgoing {
    if (this.#settings.freezeMessages) deepFreeze(message);
    const lane = laneOf(to.lanes, kind);
    const body = this.#codecs.encode(message);
    const isEncoded = body !== message;
    const trace = this.#tracer?.outgoing();
    return { type, lane, isEncoded, id, kind, deadlineMs, trace, body, transfer: options?.transfer };
  }

  #send(to: Address, message: Outgoing, lazy = false): boolean {
    const endpoint = this.#endpoint;
    const { connections } = endpoint;
    const connection = endpoint.connect(to);
    if (connection === undefined) {
      endpoint.unreachable(to, message);
      return true;
    }
    const accepted = connection.send(message);
    connections.markDirty(connection, lazy);
    if (accepted || !connections.synchronous || message.lane !== laneIndex.data) return accepted;
    return this.#blockForCredit(connection, message.kind);
  }

  #blockForCredit(connection: Connection, kind: string): boolean {
    const { sendDeadlineMs } = this.#settings;
    const deadlineMs = this.#endpoint.clock.now() + sendDeadlineMs;
    if (this.#endpoint.blockUntil(() => connection.hasCredit, deadlineMs)) return true;
    const target = describe(connection.peer);
    throw new TroupeError("SEND_TIMEOUT", {
      where: `tell ${target}.${kind}`,
      expected: `credit within ${sendDeadlineMs} ms`,
      got: "none, because the receiver took nothing",
      hint: "see what it does with inspect()",
      fields: { target, kind },
    });
  }
}

function checkDeadline(where: string, deadlineMs: number): void {
  if (deadlineMs > 0 && Number.isFinite(deadlineMs)) return;
  throw new TroupeError("DEADLINE_INVALID", {
    where,
    expected: "deadlineMs to be a positive number",
    got: String(deadlineMs),
    hint: "every wait needs a limit",
    fields: { deadlineMs },
  });
}
