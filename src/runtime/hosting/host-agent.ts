import { TroupeError } from "../../errors/index.ts";
import { type Failure, toFailure } from "../protocol/failure.ts";
import { Hub } from "../transport/hub/hub.ts";
import type { ForkSupport } from "../transport/link-opener.ts";
import { type Network, TcpDoor } from "../transport/tcp/tcp-door.ts";
import { ForkServer } from "./fork-server.ts";
import { HeadProxy } from "./head-proxy.ts";
import { makeHostFolder, sweepHostFolder } from "./host-folder.ts";
import {
  firstHostIndex,
  type HostMeans,
  type HostNews,
  type HostOrder,
  unpackHostOrder,
} from "./host-orders.ts";
import { removeOwnedFolder } from "./owned-folder.ts";
import { packControl } from "./packed-control.ts";
import { lastWordsMs, type StartedProcess, startProcess } from "./started-process.ts";
import { within } from "./within.ts";

const head = 0;

/** The data that other hosts need to join a system. Plain data. */
export interface Invitation {
  /** Address of the head's door. */
  readonly address: string;
  /** Secret shared by the hosts of this system; left out if they have it already. */
  readonly token?: string;
  /** Whether hosts need a trusted certificate to join. */
  readonly isSealed: boolean;
  /** As in `MessagingSettings`: a host that allowed less would take a large message for a broken connection. */
  readonly maxFrameBytes: number;
}

/** Options of a host that joins a system. */
export interface HostAgentOptions {
  readonly invitation: Invitation;
  /** The shared secret, if the invitation does not hold it. */
  readonly token: string | undefined;
  /** How other processes reach this host. */
  readonly network: Network;
  /** Number of this host among all that have ever joined this system; never reused. */
  readonly number: number;
  /** Number of its place among the hosts; the head is 0. */
  readonly place: number;
  /** Name of the host, for people. */
  readonly name: string;
  readonly means: HostMeans;
  /** See `HostsOptions.about`. */
  readonly about: string;
  /** See `HostCard.isCompanion`. */
  readonly isCompanion: boolean;
  /** See `ProcessSupport.forks`. Default: each process is started by itself. */
  readonly forks?: ForkSupport | undefined;
}

/** Represents this host in a system that another leads: starts processes, relays their messages, reports their ends. */
export class HostAgent {
  /** Resolves once the system has released this host and all processes here have ended; with its failure, if it failed. */
  readonly over: Promise<Failure | undefined>;
  readonly #options: HostAgentOptions;
  readonly #folder = makeHostFolder();
  readonly #running = new Map<number, StartedProcess>();
  #forks: ForkServer | undefined;
  readonly #welcome = Promise.withResolvers<void>();
  readonly #over = Promise.withResolvers<Failure | undefined>();
  #hub: Hub | undefined;
  #proxy: HeadProxy | undefined;
  #isEnding = false;
  #failure: Failure | undefined;

  private constructor(options: HostAgentOptions) {
    this.#options = options;
    this.over = this.#over.promise;
    this.#welcome.promise.catch(() => {});
  }

  /**
   * Calls the head and resolves once this host has been admitted.
   * @throws {TroupeError} `HOST_REFUSED` with the head's reason; `PEER_UNTRUSTED` if one of the two does not trust the
   *   other's certificate; `RUN_INTERRUPTED` if a signal is ending the run; `HOST_LOST` if the head does not answer
   */
  static async join(options: HostAgentOptions): Promise<HostAgent> {
    refuseOtherTrust(options);
    const agent = new HostAgent(options);
    await agent.#open();
    await agent.#welcome.promise;
    return agent;
  }

  /** Tells the head that a signal asks this host to end; the head decides when. */
  signal(signal: NodeJS.Signals): void {
    this.#tell({ kind: "signal", signal });
  }

  async #open(): Promise<void> {
    const { invitation, network, number, place, name, means, about, isCompanion } = this.#options;
    const trust = { token: this.#token, maxFrameBytes: invitation.maxFrameBytes };
    const proxy = await HeadProxy.open({
      network,
      ...trust,
      toHead: (frame, process) => this.#hub?.pass(head, frame, process),
      onLost: (index, error) =>
        this.#tell({ kind: "disconnected", index, failure: error && toFailure(error) }),
    });
    this.#proxy = proxy;
    const hub = await Hub.open({
      index: firstHostIndex + number,
      door: new TcpDoor({ ...network, port: 0 }),
      ...trust,
      onControl: (_from, bytes) => this.#obey(unpackHostOrder(bytes)),
      relay: (_from, frame) => {
        if (frame.of !== head) proxy.deliver(frame);
        return frame.of !== head;
      },
      onLost: (index, error) => {
        if (index === head) this.#end(toFailure(isRefusal(error) ? error : headLost(error)));
      },
    });
    this.#hub = hub;
    hub.know(head, invitation.address);
    this.#tell({ kind: "host", place, name, about, means, isCompanion });
  }

  get #token(): string {
    const { invitation, token } = this.#options;
    return invitation.token ?? token ?? "";
  }

  #obey(order: HostOrder): void {
    if (order.kind === "welcome") this.#welcome.resolve();
    else if (order.kind === "begin") this.#begin(order);
    else if (order.kind === "kill") this.#running.get(order.index)?.kill();
    else this.#end(order.failure);
  }

  #begin({ name, start }: Extract<HostOrder, { readonly kind: "begin" }>): void {
    const { index } = start;
    const { forks } = this.#options;
    this.#forks ??= forks && new ForkServer(forks);
    const network = { ...this.#options.network, port: 0 };
    const systemAddress = this.#proxy?.address ?? "";
    const given = { ...start, folder: this.#folder, network, systemAddress, token: this.#token };
    const onBegun = (pid: number) => this.#tell({ kind: "begun", index, pid });
    const started = this.#forks?.start(name, given, onBegun) ?? startProcess(name, given, onBegun);
    this.#running.set(index, started);
    void this.#untilOver(index, started);
  }

  async #untilOver(index: number, started: StartedProcess): Promise<void> {
    const { exitCode, signalCode, error } = await started.exited;
    // A process that it has started may hold its output for ever.
    await within(lastWordsMs, Promise.all([started.silent, this.#proxy?.gone(index)]));
    this.#running.delete(index);
    sweepHostFolder(this.#folder, index);
    const failure = error && toFailure(error);
    const { lastLines } = started;
    this.#tell({ kind: "over", index, exitCode, signalCode, failure, lastLines });
    if (this.#isEnding) void this.#leaveWhereEmpty();
  }

  #tell(news: HostNews): void {
    this.#hub?.control(head, packControl(news));
  }

  #end(failure: Failure | undefined): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#failure = failure;
    for (const started of this.#running.values()) started.kill();
    void this.#leaveWhereEmpty();
  }

  /** Leaves once nothing runs here and the head has received all reports, which could otherwise be lost with this host. */
  async #leaveWhereEmpty(): Promise<void> {
    if (this.#running.size > 0) return;
    await this.#forks?.close();
    await this.#hub?.leave();
    this.#hub?.close();
    this.#proxy?.close();
    removeOwnedFolder(this.#folder);
    this.#welcome.reject(refusedBy(this.#failure));
    this.#over.resolve(this.#failure);
  }
}

/** Refuses to call a head with other security settings: either end would only see that the other closed the call. */
function refuseOtherTrust({ invitation, network, token }: HostAgentOptions): void {
  const isSealed = network.tls !== undefined;
  const needsToken = invitation.token === undefined;
  if (isSealed === invitation.isSealed && needsToken === (token !== undefined)) return;
  const trust = (sealed: boolean, held: boolean) =>
    `${sealed ? "certificates" : "no certificates"} and ${held ? "a token file" : "no token file"}`;
  throw new TroupeError("HOST_REFUSED", {
    where: "hosts",
    expected: `${trust(invitation.isSealed, needsToken)}, as host 0 has`,
    got: trust(isSealed, token !== undefined),
    hint: "give every host the same --tls-cert, --tls-key, --tls-ca and --host-token-file",
  });
}

function headLost(cause: Error | undefined): TroupeError {
  return new TroupeError("HOST_LOST", {
    where: "hosts",
    expected: "host 0, which leads the run, to stay",
    got: cause === undefined ? "its connection closed" : cause.message,
    hint: "see its output; the launcher starts both again",
    cause,
  });
}

function isRefusal(error: Error | undefined): error is TroupeError {
  return error instanceof TroupeError && (error.code === "PEER_UNTRUSTED" || error.code === "HOST_REFUSED");
}

function refusedBy(failure: Failure | undefined): Error {
  const relayed = failure?.message ?? "[hosts] expected to be admitted, got the end of the run";
  const known = (["HOST_LOST", "PEER_UNTRUSTED", "RUN_INTERRUPTED"] as const).find(
    (code) => code === failure?.code,
  );
  return new TroupeError(known ?? "HOST_REFUSED", { relayed });
}
