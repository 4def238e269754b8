import { type Mesh, mapTensors, type PassKey } from "../../parallel/index.ts";
import { type StageLinkProtocol, sentTo } from "../../protocols/index.ts";
import { type ActorContext, type ActorRef, systemClock } from "../../runtime/index.ts";
import { attach, hold, moveRef, shareRef, type Tensor, type TensorRef } from "../../tensor/index.ts";

/** Where a rank stands in its pipeline. */
export interface StagePosition {
  readonly mesh: Mesh;
  readonly rank: number;
  /** Chunks of the model on each stage. */
  readonly numChunks: number;
}

type Context = Pick<ActorContext<StageLinkProtocol>, "receive" | "flush">;

/**
 * A rank's way to the stages before and behind it: tensors as messages, received by blocking. Passes are named by what
 * the ranks do, a word that all stages agree on, so early messages wait for their turn.
 */
export class StageLink {
  readonly #context: Context;
  readonly #peers: readonly ActorRef<StageLinkProtocol>[];
  readonly #position: StagePosition;
  readonly #deadline: { readonly deadlineMs: number };
  readonly #activations = new Map<string, StageLinkProtocol["activation"]["in"]>();
  readonly #gradients = new Map<string, StageLinkProtocol["gradient"]["in"]>();
  readonly #results = new Map<string, StageLinkProtocol["result"]["in"]>();
  readonly #onWaited: (beginMs: number) => void;
  /** Time the computation stood still for another stage since this was last set to 0, in milliseconds. */
  waitedMs = 0;

  /**
   * @param peers - every rank of the world, in order
   * @param onWaited - told of each wait that ends, with its begin on the runtime's clock
   */
  constructor(
    context: Context,
    peers: readonly ActorRef<StageLinkProtocol>[],
    position: StagePosition,
    deadlineMs: number,
    onWaited: (beginMs: number) => void = () => {},
  ) {
    this.#context = context;
    this.#onWaited = onWaited;
    this.#peers = peers;
    this.#position = position;
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

  /** Hands what a forward pass of `chunk` came to on to the next; the tensors stay the caller's. */
  sendActivations(work: string, { microBatch, chunk }: PassKey, tensors: readonly Tensor[]): void {
    const peer = this.#peerAt(this.#virtual(chunk) + 1);
    const pass = passName(work, microBatch, this.#virtual(chunk) + 1);
    peer.tell("activation", {
      pass,
      tensors: tensors.map((tensor) => {
        const plain = hold(() => tensor.detach());
        const ref = shareRef(plain, sentTo(peer));
        plain.dispose();
        return ref;
      }),
      asking: tensors.map((tensor) => tensor.requiresGrad),
    });
    this.#context.flush();
  }

  /** What the stage before has sent into `chunk`, as leaves; the caller's to dispose. Blocks. */
  receiveActivations(work: string, { microBatch, chunk }: PassKey): Tensor[] {
    const pass = passName(work, microBatch, this.#virtual(chunk));
    const { tensors, asking } = this.#take(this.#activations, "activation", pass);
    return tensors.map((ref, index) => {
      const tensor = hold(() => attach(ref).detach());
      return asking[index] ? tensor.requiresGrad_() : tensor;
    });
  }

  /** Hands the gradients of what `chunk` received back; ownership passes. */
  sendGradients(work: string, { microBatch, chunk }: PassKey, gradients: readonly (Tensor | null)[]): void {
    const peer = this.#peerAt(this.#virtual(chunk) - 1);
    peer.tell("gradient", {
      pass: passName(work, microBatch, this.#virtual(chunk) - 1),
      gradients: gradients.map((gradient) => gradient && moveRef(gradient, sentTo(peer))),
    });
    this.#context.flush();
  }

  /** The gradients of what `chunk` sent; the caller's to dispose. Blocks. */
  receiveGradients(work: string, { microBatch, chunk }: PassKey): (Tensor | null)[] {
    const pass = passName(work, microBatch, this.#virtual(chunk));
    const { gradients } = this.#take(this.#gradients, "gradient", pass);
    return gradients.map((ref) => ref && hold(() => attach(ref)));
  }

  /** Tells all other stages what the last one computed; the tensors stay the caller's. */
  sendResult(work: string, value: unknown): void {
    const { mesh, rank } = this.#position;
    for (let stage = 0; stage < mesh.placeOf(rank).pp; stage++) {
      const peer = this.#peerAt(stage);
      const sent = mapTensors(value, (tensor) =>
        moveRef(
          hold(() => tensor.clone()),
          sentTo(peer),
        ),
      );
      peer.tell("result", { pass: work, value: sent });
    }
    this.#context.flush();
  }

  /** What the last stage computed; its tensors belong to the running scope. Blocks. */
  receiveResult(work: string): unknown {
    return attachAll(this.#take(this.#results, "result", work).value);
  }

  /** Takes in a message that came while nobody waited for it. */
  arrived(message: StageLinkProtocol[keyof StageLinkProtocol]["in"]): void {
    if ("tensors" in message) this.#activations.set(message.pass, message);
    else if ("gradients" in message) this.#gradients.set(message.pass, message);
    else this.#results.set(message.pass, message);
  }

  #take<M>(arrived: Map<string, M>, kind: keyof StageLinkProtocol, pass: string): M {
    const beginMs = systemClock.now();
    for (;;) {
      const message = arrived.get(pass);
      if (message !== undefined) {
        arrived.delete(pass);
        this.waitedMs += systemClock.now() - beginMs;
        this.#onWaited(beginMs);
        return message;
      }
      this.arrived(this.#context.receive([kind], this.#deadline).message);
    }
  }

  #virtual(chunk: number): number {
    const { mesh, rank } = this.#position;
    return chunk * mesh.shape.pp + mesh.placeOf(rank).pp;
  }

  #peerAt(virtual: number): ActorRef<StageLinkProtocol> {
    const { mesh, rank } = this.#position;
    const { dp, tp } = mesh.placeOf(rank);
    return this.#peers[mesh.rankAt({ pp: virtual % mesh.shape.pp, dp, tp })] as ActorRef<StageLinkProtocol>;
  }
}

/** @returns `value` with a tensor in place of every ref in it */
function attachAll(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if ((value as Partial<TensorRef>).kind === "tensor-ref") return attach(value as TensorRef);
  if (Array.isArray(value)) return value.map(attachAll);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, attachAll(item)]));
}

/** @param virtual - the chunk along the model whose input (or output's gradient) is meant */
const passName = (work: string, microBatch: number, virtual: number) => `${work}/${microBatch}/${virtual}`;
