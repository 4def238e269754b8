import type { StatusBoard } from "../inspection/status-board.ts";
import type { Connection } from "../messaging/connection.ts";
import type { Endpoint } from "../messaging/endpoint.ts";
import { describe } from "../protocol/address.ts";
import { type Failure, isStopRequest, StopRequested, toFailure } from "../protocol/failure.ts";
import { RecordType } from "../protocol/record.ts";
import type { Behavior } from "./define-actor.ts";

/** The way an actor ended. */
export type End = { readonly kind: "stopped" } | { readonly kind: "failed"; readonly failure: Failure };

/** A request to an actor to stop. */
export interface StopRequest {
  readonly reason: string;
  /** Whether messages that have arrived are handled first. */
  readonly drain: boolean;
}

/** Parts of the cell that {@link Lifecycle} uses. */
export interface LifecycleOptions {
  readonly endpoint: Endpoint;
  /** The connection to the actor's system. */
  readonly system: Connection;
  readonly board: StatusBoard;
  /** Called once, after the last record has been sent. */
  onEnd(end: End): void;
}

/** The phases of one actor: starting, running, ending, ended. It ends once, with the last record that its system receives. */
export class Lifecycle {
  readonly #options: LifecycleOptions;
  #phase: "starting" | "running" | "ending" | "ended" = "starting";
  #stopRequest: StopRequest | undefined;
  #stopHook: Behavior<unknown>["stop"];

  constructor(options: LifecycleOptions) {
    this.#options = options;
  }

  /** Whether messages are handled. */
  get isRunning(): boolean {
    return this.#phase === "running";
  }

  get hasEnded(): boolean {
    return this.#phase === "ended";
  }

  /** The request to stop; undefined before it. */
  get stopRequest(): StopRequest | undefined {
    return this.#stopRequest;
  }

  /** Starts running the actor, unless it has ended meanwhile. */
  begin(behavior: Behavior<unknown>, kinds: readonly string[]): void {
    if (this.#phase !== "starting") return;
    const { endpoint, system, board } = this.#options;
    this.#phase = "running";
    this.#stopHook = behavior.stop?.bind(behavior);
    const body = { address: endpoint.address, kinds };
    endpoint.outbox.sendRecord(system, { type: RecordType.started, body });
    board.enter("idle");
  }

  /** Asks it to stop. Only the first request counts. */
  requestStop(request: StopRequest): void {
    this.#stopRequest ??= request;
  }

  /** Breaks off a blocking call of an actor that was asked to stop; its own `stop` may block. @throws {StopRequested} */
  checkStop(): void {
    if (this.#stopRequest !== undefined && this.#phase !== "ending")
      throw new StopRequested(this.#stopRequest.reason);
  }

  /** Whether an error only comes from a blocking call that a request to stop broke off. */
  isUnwinding(error: unknown): boolean {
    return this.#stopRequest !== undefined && isStopRequest(error);
  }

  /** Stops it in order: its `stop` runs, and messages that wait for credit are sent. */
  async finish(): Promise<void> {
    const { endpoint, board } = this.#options;
    this.#phase = "ending";
    board.enter("stopping");
    try {
      await this.#stopHook?.(this.#stopRequest?.reason ?? "stopped");
      await endpoint.connections.allReady();
    } catch (error) {
      this.fail(error);
      return;
    }
    board.enter("stopped");
    this.#end({ kind: "stopped" }, { type: RecordType.stopped });
  }

  /** Ends it at once, as failed. */
  fail(error: unknown): void {
    if (this.#phase === "ended") return;
    const { endpoint, board } = this.#options;
    const failure = toFailure(error, describe(endpoint.address));
    board.enter("failed");
    this.#end({ kind: "failed", failure }, { type: RecordType.failed, body: failure });
  }

  /** Disconnects it without asking: nothing that it does from here on reaches another actor. */
  abandon(): void {
    if (this.#phase === "ended") return;
    const { endpoint, board } = this.#options;
    this.#phase = "ended";
    board.enter("stopped");
    endpoint.close();
  }

  #end(end: End, lastRecord: { readonly type: RecordType; readonly body?: unknown }): void {
    if (this.#phase === "ended") return;
    const { endpoint, system } = this.#options;
    endpoint.connections.abandonWaiting();
    this.#phase = "ended";
    endpoint.outbox.sendRecord(system, lastRecord, true);
    endpoint.connections.flush();
    endpoint.close();
    this.#options.onEnd(end);
  }
}
