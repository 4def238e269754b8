import type { StatusBoard } from "../inspection/status-board.ts";
import type { Connection } from "../messaging/connection.ts";
import type { Endpoint } from "../messaging/endpoint.ts";
import { describe } from "../protocol/address.ts";
import { type Failure, isStopRequest, StopRequested, toFailure } from "../protocol/failure.ts";
import { RecordType } from "../protocol/record.ts";
import type { Behavior } from "./define-actor.ts";

/** How an actor ended. */
export type End = { readonly kind: "stopped" } | { readonly kind: "failed"; readonly failure: Failure };

/** How the system asks an actor to stop. */
export interface StopRequest {
  readonly reason: string;
  /** Whether messages that have arrived are handled first. */
  readonly drain: boolean;
}

/** What a lifecycle needs of its actor's cell. */
export interface LifecycleOptions {
  readonly endpoint: Endpoint;
  /** To the actor's system. */
  readonly system: Connection;
  readonly board: StatusBoard;
  /** Called once, after the last record has been sent. */
  onEnd(end: End): void;
}

/** One actor's life: starting, running, ending, ended. It ends once, and its system hears of that after all else. */
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

  /** Why and how it is to stop, from when it was asked to. */
  get stopRequest(): StopRequest | undefined {
    return this.#stopRequest;
  }

  /** The actor has been made; from here on it runs, unless it has ended meanwhile. */
  begin(behavior: Behavior<unknown>, kinds: readonly string[]): void {
    if (this.#phase !== "starting") return;
    const { endpoint, system, board } = this.#options;
    this.#phase = "running";
    this.#stopHook = behavior.stop?.bind(behavior);
    const body = { address: endpoint.address, kinds };
    endpoint.outbox.sendRecord(system, { type: RecordType.started, body });
    board.enter("idle");
  }

  /** Asks it to stop: the first who asks says how. */
  requestStop(request: StopRequest): void {
    this.#stopRequest ??= request;
  }

  /**
   * Breaks off a call that blocks in an actor that is to stop; its own `stop` may block.
   * @throws {StopRequested}
   */
  checkStop(): void {
    if (this.#stopRequest !== undefined && this.#phase !== "ending") {
      throw new StopRequested(this.#stopRequest.reason);
    }
  }

  /** Whether an error is only the way in which a call that blocked ended when the actor was asked to stop. */
  isUnwinding(error: unknown): boolean {
    return this.#stopRequest !== undefined && isStopRequest(error);
  }

  /** Stops it in order: its `stop` runs, and what waits for credit is sent. */
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

  /** Ends it with an error, at once. */
  fail(error: unknown): void {
    if (this.#phase === "ended") return;
    const { endpoint, board } = this.#options;
    const failure = toFailure(error, describe(endpoint.address));
    board.enter("failed");
    this.#end({ kind: "failed", failure }, { type: RecordType.failed, body: failure });
  }

  /** Cuts it off without its consent: nothing it does from here on reaches anyone. */
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
