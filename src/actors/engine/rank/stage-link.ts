import type { Carried, Carrier, Incoming, Recipient } from "../../../compute/collectives/index.ts";
import { type Mesh, mapTensors, type PassKey } from "../../../compute/parallel/index.ts";
import { hold, type Tensor } from "../../../compute/tensor/index.ts";
import { type ActorContext, type ActorRef, systemClock } from "../../../runtime/index.ts";
import { type StageLinkProtocol, sentTo } from "../../protocols/index.ts";

/** Messages that have come; their tensors are there or on their way. */
interface Arrived {
  readonly activation: { readonly tensors: readonly Incoming[]; readonly asking: readonly boolean[] };
  readonly gradient: { readonly gradients: readonly (Incoming | null)[] };
  readonly result: { readonly value: unknown; readonly tensors: readonly Incoming[] };
}

/** A rank's position in its pipeline. */
export interface StagePosition {
  readonly mesh: Mesh;
  readonly rank: number;
  /** Chunks of the model on each stage. */
  readonly numChunks: number;
}

type Context = Pick<ActorContext<StageLinkProtocol>, "receive" | "flush">;

/** Tensors to and from the stages before and behind, received by blocking. Passes have names: early messages wait for theirs. */
export class StageLink {
  readonly #context: Context;
  readonly #peers: readonly ActorRef<StageLinkProtocol>[];
  readonly #position: StagePosition;
  readonly #deadline: { readonly deadlineMs: number };
  readonly #carrier: Carrier;
  readonly #activations = new Map<string, Arrived["activation"]>();
  readonly #gradients = new Map<string, Arrived["gradient"]>();
  readonly #results = new Map<string, Arrived["result"]>();
  readonly #onWaited: (beginMs: number) => void;
  /** Time the computation stood still for another stage since this was last set to 0, in milliseconds. */
  waitedMs = 0;

  /** @param peers - the world, in order @param carrier - between stages @param onWaited - given each wait's begin */
  constructor(
    context: Context,
    peers: readonly ActorRef<StageLinkProtocol>[],
    position: StagePosition,
    carrier: Carrier,
    deadlineMs: number,
    onWaited: (beginMs: number) => void = () => {},
  ) {
    this.#context = context;
    this.#onWaited = onWaited;
    this.#peers = peers;
    this.#position = position;
    this.#carrier = carrier;
    this.#deadline = { deadlineMs };
  }

  /** @returns whether the model begins with `chunk` of this stage */
  isFirst(chunk: number): boolean {
    return this.#virtual(chunk) === 0;
  }

  /** @returns whether the model ends with `chunk` of this stage */
  isLast(chunk: number): boolean {
    const { mesh, numChunks } = this.#position;
    return this.#virtual(chunk) === mesh.shape.pp * numChunks - 1;
  }

  /** Sends the result of a forward pass of `chunk` to the next; the tensors stay the caller's. */
  sendActivations(work: string, { microBatch, chunk }: PassKey, tensors: readonly Tensor[]): void {
    const { peer, to } = this.#peerAt(this.#virtual(chunk) + 1);
    peer.tell("activation", {
      from: this.#stage,
      pass: passName(work, microBatch, this.#virtual(chunk) + 1),
      tensors: tensors.map((tensor) => {
        const plain = hold(() => tensor.detach());
        const carried = this.#carrier.share(plain, to);
        plain.dispose();
        return carried;
      }),
      asking: tensors.map((tensor) => tensor.requiresGrad),
    });
    this.#context.flush();
  }

  /** Receives the tensors of the stage before for `chunk`, as leaves; the caller's to dispose. Blocks. */
  receiveActivations(work: string, { microBatch, chunk }: PassKey): Tensor[] {
    const pass = passName(work, microBatch, this.#virtual(chunk));
    const { tensors, asking } = this.#take(this.#activations, pass, ({ tensors }) => tensors);
    return tensors.map(({ open }, index) => {
      const tensor = hold(() => open().detach());
      return asking[index] ? tensor.requiresGrad_() : tensor;
    });
  }

  /** Sends the gradients of the tensors that `chunk` received back; ownership passes. */
  sendGradients(work: string, { microBatch, chunk }: PassKey, gradients: readonly (Tensor | null)[]): void {
    const { peer, to } = this.#peerAt(this.#virtual(chunk) - 1);
    peer.tell("gradient", {
      from: this.#stage,
      pass: passName(work, microBatch, this.#virtual(chunk) - 1),
      gradients: gradients.map((gradient) => gradient && this.#carrier.move(gradient, to)),
    });
    this.#context.flush();
  }

  /** Receives the gradients of the tensors that `chunk` sent; the caller's to dispose. Blocks. */
  receiveGradients(work: string, { microBatch, chunk }: PassKey): (Tensor | null)[] {
    const pass = passName(work, microBatch, this.#virtual(chunk));
    const { gradients } = this.#take(this.#gradients, pass, ({ gradients }) => gradients);
    return gradients.map((incoming) => incoming && hold(incoming.open));
  }

  /** Sends the last stage's result to all other stages; the tensors stay the caller's. */
  sendResult(work: string, value: unknown): void {
    for (let stage = 0; stage < this.#stage; stage++) {
      const { peer, to } = this.#peerAt(stage);
      const sent = mapTensors(value, (tensor) =>
        this.#carrier.move(
          hold(() => tensor.clone()),
          to,
        ),
      );
      peer.tell("result", { from: this.#stage, pass: work, value: sent });
    }
    this.#context.flush();
  }

  /** Receives the last stage's result; its tensors belong to the running scope. Blocks. */
  receiveResult(work: string): unknown {
    const { value, tensors } = this.#take(this.#results, work, ({ tensors }) => tensors);
    const opened = tensors.values();
    return mapCarried(value, () => opened.next().value?.open());
  }

  /** Receives a message, in the order of arrival: its tensors may still be on their way. */
  arrived(message: StageLinkProtocol[keyof StageLinkProtocol]["in"]): void {
    const { from, pass } = message;
    const sender = this.#rankAt(from);
    const take = (carried: Carried) => this.#carrier.take(carried, sender);
    if ("tensors" in message) {
      this.#activations.set(pass, { tensors: message.tensors.map(take), asking: message.asking });
    } else if ("gradients" in message) {
      this.#gradients.set(pass, { gradients: message.gradients.map((carried) => carried && take(carried)) });
    } else {
      const tensors: Incoming[] = [];
      mapCarried(message.value, (carried) => tensors.push(take(carried)));
      this.#results.set(pass, { value: message.value, tensors });
    }
  }

  #take<M>(
    arrived: Map<string, M>,
    pass: string,
    tensorsOf: (message: M) => readonly (Incoming | null)[],
  ): M {
    const beginMs = systemClock.now();
    let message = arrived.get(pass);
    while (message === undefined) {
      this.arrived(this.#context.receive(KINDS, this.#deadline).message);
      message = arrived.get(pass);
    }
    arrived.delete(pass);
    for (const incoming of tensorsOf(message)) incoming?.work.wait();
    this.waitedMs += systemClock.now() - beginMs;
    this.#onWaited(beginMs);
    return message;
  }

  #virtual(chunk: number): number {
    const { mesh, rank } = this.#position;
    return chunk * mesh.shape.pp + mesh.placeOf(rank).pp;
  }

  get #stage(): number {
    const { mesh, rank } = this.#position;
    return mesh.placeOf(rank).pp;
  }

  #peerAt(virtual: number): { peer: ActorRef<StageLinkProtocol>; to: Recipient } {
    const rank = this.#rankAt(virtual % this.#position.mesh.shape.pp);
    const peer = this.#peers[rank] as ActorRef<StageLinkProtocol>;
    return { peer, to: { rank, ...sentTo(peer) } };
  }

  #rankAt(pp: number): number {
    const { mesh, rank } = this.#position;
    const { dp, tp } = mesh.placeOf(rank);
    return mesh.rankAt({ pp, dp, tp });
  }
}

/** Every kind: a carrier's tensors come in the order of all messages. */
const KINDS: readonly (keyof StageLinkProtocol)[] = ["activation", "gradient", "result"];

/** @returns `value` with `change` applied to everything carried in it, in order */
function mapCarried(value: unknown, change: (carried: Carried) => unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const { kind } = value as Partial<Carried>;
  if (kind === "tensor-ref" || kind === "sent-tensor") return change(value as Carried);
  if (Array.isArray(value)) return value.map((item) => mapCarried(item, change));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapCarried(item, change)]));
}

/** @param virtual - the chunk along the model whose input (or output's gradient) is sent */
const passName = (work: string, microBatch: number, virtual: number) => `${work}/${microBatch}/${virtual}`;
