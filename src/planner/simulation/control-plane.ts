import { VirtualTime } from "./virtual-time.ts";

/** What control costs on a machine, in seconds of the event loop that does it. */
export interface ControlCosts {
  /** To send a message. */
  readonly sendS: number;
  /** To take one in. */
  readonly receiveS: number;
  /** Of one end of a connection, until it can be used. */
  readonly connectS: number;
  /** Of the store in which groups meet, to answer one request. */
  readonly storeS: number;
  /** Of the way. */
  readonly latencyS: number;
}

/** Who talks with whom. */
export interface ControlShape {
  readonly numRanks: number;
  /** How many each one orders and hears straight: all ranks where left out, as the conductor does. */
  readonly fanOut?: number;
  /** With how many others each rank's groups connect it: all where left out, as Gloo's full mesh does. */
  readonly numPeers?: number;
}

/** What control came to in virtual time. */
export interface ControlSimulation {
  /** From the first order until all ranks could take the first step; that processes and models load is not in it. */
  readonly startS: number;
  /** Of that, what the groups' meeting took. */
  readonly meetingS: number;
  /** Between the order of a step and its last answer, nothing computed. */
  readonly stepS: number;
  /** Messages of one step, all ranks together. */
  readonly stepMessages: number;
  /** For how long the head's event loop is busy with one step's control. */
  readonly headBusyS: number;
  /** Share of its time that the head's event loop spends with signs of life. */
  readonly heartbeatShare: number;
  readonly numEvents: number;
}

/** Orders and answers that make one start: connect to peers, declare, prepare; and one step: compute, update. */
const START_ROUNDS = 3;
const STEP_ROUNDS = 2;
const HEARTBEAT_S = 0.2;
const HEARTBEATS = 5;

/** An event loop: does one thing after the other. */
class Loop {
  readonly #time: VirtualTime;
  #freeS = 0;
  busyS = 0;

  constructor(time: VirtualTime) {
    this.#time = time;
  }

  /** Has it do something that takes so long, once it has done all before, and then `done`. */
  work(costS: number, done: () => void): void {
    this.#freeS = Math.max(this.#freeS, this.#time.nowS) + costS;
    this.busyS += costS;
    this.#time.at(this.#freeS, done);
  }
}

/**
 * Runs what the actors of a run say to each other beside their work, message by message, on the event loops of `numRanks` processes and
 * their head: the start, one step, and a second of heartbeats. Node 0 is the head; those that one orders are its children in a heap.
 */
export function simulateControl(shape: ControlShape, costs: ControlCosts): ControlSimulation {
  const { numRanks } = shape;
  const time = new VirtualTime();
  const loops = Array.from({ length: numRanks + 1 }, () => new Loop(time));
  const head = loops[0] as Loop;
  const talk = new Talk(time, loops, shape.fanOut ?? numRanks, costs);
  let numEvents = 0;
  const phase = (begin: () => void) => {
    const [beganS, busyS, numBefore] = [time.nowS, head.busyS, talk.numMessages];
    begin();
    numEvents += time.run();
    return {
      tookS: time.nowS - beganS,
      busyS: head.busyS - busyS,
      numMessages: talk.numMessages - numBefore,
    };
  };
  const connected = phase(() => talk.connect());
  const ordered = phase(() => talk.rounds(START_ROUNDS));
  const met = phase(() => meet(time, loops.slice(1), shape.numPeers ?? numRanks - 1, costs));
  const step = phase(() => talk.rounds(STEP_ROUNDS));
  const beats = phase(() => talk.heartbeats());
  return {
    startS: connected.tookS + ordered.tookS + met.tookS,
    meetingS: met.tookS,
    stepS: step.tookS,
    stepMessages: step.numMessages,
    headBusyS: step.busyS,
    heartbeatShare: beats.busyS / (HEARTBEATS * HEARTBEAT_S),
    numEvents,
  };
}

/** Messages down a tree and up again. */
class Talk {
  numMessages = 0;
  readonly #time: VirtualTime;
  readonly #loops: readonly Loop[];
  readonly #fanOut: number;
  readonly #costs: ControlCosts;

  constructor(time: VirtualTime, loops: readonly Loop[], fanOut: number, costs: ControlCosts) {
    this.#time = time;
    this.#loops = loops;
    this.#fanOut = fanOut;
    this.#costs = costs;
  }

  /** Each two that talk have a connection for each direction: both ends pay for both. */
  connect(): void {
    const cost = 2 * this.#costs.connectS;
    for (const [node, loop] of this.#loops.entries())
      for (const child of this.#childrenOf(node)) {
        loop.work(cost, () => {});
        this.#loops[child]?.work(cost, () => {});
      }
  }

  /** So many orders to all, each answered by all before the next. */
  rounds(count: number): void {
    if (count > 0) this.#order(0, () => this.rounds(count - 1));
  }

  /** Each gives those that it talks with a sign, and takes theirs in. */
  heartbeats(): void {
    const beginS = this.#time.nowS;
    for (let beat = 0; beat < HEARTBEATS; beat += 1)
      this.#time.at(beginS + beat * HEARTBEAT_S, () => {
        for (const node of this.#loops.keys())
          for (const child of this.#childrenOf(node)) {
            this.#send(node, child, () => {});
            this.#send(child, node, () => {});
          }
      });
  }

  #order(node: number, answered: () => void): void {
    const children = this.#childrenOf(node);
    let open = children.length;
    if (open === 0) answered();
    for (const child of children)
      this.#send(node, child, () =>
        this.#order(child, () =>
          this.#send(child, node, () => {
            open -= 1;
            if (open === 0) answered();
          }),
        ),
      );
  }

  #send(from: number, to: number, taken: () => void): void {
    const { sendS, receiveS, latencyS } = this.#costs;
    this.numMessages += 1;
    this.#loops[from]?.work(sendS, () =>
      this.#time.at(this.#time.nowS + latencyS, () => this.#loops[to]?.work(receiveS, taken)),
    );
  }

  #childrenOf(node: number): number[] {
    const first = node * this.#fanOut + 1;
    const count = Math.max(0, Math.min(this.#fanOut, this.#loops.length - first));
    return Array.from({ length: count }, (_, index) => first + index);
  }
}

/** Each rank asks the one store for each peer's address, one after the other, and connects to it. */
function meet(time: VirtualTime, ranks: readonly Loop[], numPeers: number, costs: ControlCosts): void {
  const store = new Loop(time);
  const next = (rank: Loop, left: number): void => {
    if (left === 0) return;
    time.at(time.nowS + costs.latencyS, () =>
      store.work(costs.storeS, () =>
        time.at(time.nowS + costs.latencyS, () => rank.work(costs.connectS, () => next(rank, left - 1))),
      ),
    );
  };
  for (const rank of ranks) next(rank, numPeers);
}
