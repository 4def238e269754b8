import { VirtualTime } from "../../src/tools/planner/simulation/virtual-time.ts";

/** Costs of control messages on a machine, in seconds of an event loop unless noted. */
export interface ControlCosts {
  /** To send a message. */
  readonly sendS: number;
  /** To receive one. */
  readonly receiveS: number;
  /** Per rank, for a message that gathers several ranks' answers; at either end. */
  readonly partS: number;
  /** Per actor that a message names; at either end. */
  readonly refS: number;
  /** Per order from process to process, many at once; at either end. */
  readonly orderS: number;
  /** For the head to start a rank: its process and the two actors in it. Its host's agent takes as long. */
  readonly spawnS: number;
  /** For the head, per process and heartbeat: the states of its actors, and its part of its host's heartbeat. */
  readonly beatS: number;
  /** For one end of a connection, until it can be used. */
  readonly connectS: number;
  /** For a host's first rank to start a store for the groups' rendezvous. */
  readonly storeStartS: number;
  /** Per host's store that a message names; at either end. */
  readonly storeNameS: number;
  /** For a store to accept a client and later let it go. */
  readonly openS: number;
  /** For a store to answer one request. */
  readonly storeS: number;
  /** Per member's address in such an answer. */
  readonly addressS: number;
  /** Time from the order for a process until it accepts orders, on its own host. */
  readonly bootS: number;
  /** Time from the order for an actor until it has started. */
  readonly actorS: number;
  /** Network latency. */
  readonly latencyS: number;
}

/** The layout of a simulated run's messages. */
export interface ControlShape {
  readonly numRanks: number;
  /** Number of ranks per host, which its first rank relays to; 1: no relaying. */
  readonly ranksPerHost: number;
  /** Number of hosts that each host relays to; left out: the head sends to all hosts itself. */
  readonly fanOut?: number;
  /**
   * Sizes of the groups that exchange a step's statistics, hop after hop: the first that many neighbours, the next each
   * so many of those apart, and so on. Their product is the number of ranks.
   */
  readonly hops: readonly number[];
  /** Number of peers that each rank exchanges messages with, those of the hops included. */
  readonly numPeers: number;
  /**
   * The groups whose ranks rendezvous: one entry for each thread, reached by all ranks before the next; in it, by rank,
   * the groups in the order in which that rank joins them. All members of a group share one object.
   */
  readonly groups: readonly (readonly (readonly RendezvousGroup[])[])[];
}

/** A group whose ranks rendezvous. */
export interface RendezvousGroup {
  readonly size: number;
  /** Number of the host whose store they use. */
  readonly host: number;
}

/** Results of a simulated control plane, in virtual time. */
export interface ControlSimulation {
  /** From the first order until all ranks could take the first step, without the time to load jobs. */
  readonly startS: number;
  /** Part of that until all processes had started. */
  readonly spawnedS: number;
  /** Part of that for connecting peers. */
  readonly joinedS: number;
  /** Part of that for the orders of the start. */
  readonly orderedS: number;
  /** Part of that for the groups' rendezvous. */
  readonly rendezvousS: number;
  /** From the order of a step to its last answer, with nothing computed or exchanged. */
  readonly stepS: number;
  /** Until all have exchanged the statistics of a step. */
  readonly statisticsS: number;
  /** Orders and answers of one step, for all ranks. */
  readonly stepMessages: number;
  /** Messages with statistics of one step, for all ranks. */
  readonly statisticsMessages: number;
  /** How long the head's event loop is busy with one step's control. */
  readonly headBusyS: number;
  /** Share of the head's event loop that heartbeats take. */
  readonly heartbeatShare: number;
  readonly numEvents: number;
}

/** Orders of one step with an answer: compute, update. */
const STEP = [{ weighsS: 0 }, { weighsS: 0 }];
/** Waves of starting actors: all shards, and then all ranks. */
const ACTOR_WAVES = 2;
/** Orders for a link between two actors: one to each process. */
const LINK_ORDERS = 2;
/**
 * Requests of a group's member to c10d's store (`native/comm/rendezvous.cc`). On arrival: check its size and index, and
 * be counted; the last member also requests all addresses, waits for them and stores them as one. Then each waits for
 * that and reads it. Once connected, each reports it, is counted and waits for all.
 */
const ARRIVAL_REQUESTS = 3;
const JOINING_REQUESTS = 3;
const CONNECTED_REQUESTS = 3;
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

  /** Runs work of some duration after all earlier work, and then `done`. */
  work(costS: number, done: () => void = () => {}): void {
    this.#freeS = Math.max(this.#freeS, this.#time.nowS) + costS;
    this.busyS += costS;
    this.#time.at(this.#freeS, done);
  }
}

/** One group's rendezvous at a store. */
class Rendezvous {
  readonly #time: VirtualTime;
  readonly #store: Loop;
  readonly #size: number;
  readonly #costs: ControlCosts;
  readonly #arrived: (() => void)[] = [];
  readonly #connected: (() => void)[] = [];

  constructor(time: VirtualTime, store: Loop, size: number, costs: ControlCosts) {
    this.#time = time;
    this.#store = store;
    this.#size = size;
    this.#costs = costs;
  }

  /**
   * Calls `done` once all members are connected.
   * @param isKnown - whether the thread has a connection to the store from an earlier group
   */
  join(rank: Loop, isKnown: boolean, done: () => void): void {
    const { openS, addressS, connectS, latencyS } = this.#costs;
    // One connection after the other; it opens every second one itself, there and back.
    const connectingS = (this.#size - 1) * (connectS + latencyS + addressS);
    const connect = () => rank.work(connectingS, () => this.#allConnected(done));
    const arrive = () =>
      this.#ask(ARRIVAL_REQUESTS, () =>
        this.#together(this.#arrived, JOINING_REQUESTS, 2 * this.#size, () =>
          this.#ask(1, connect, this.#size),
        ),
      );
    if (isKnown) arrive();
    else this.#reach(openS, arrive);
  }

  #allConnected(done: () => void): void {
    this.#ask(CONNECTED_REQUESTS - 1, () => this.#together(this.#connected, 1, 0, done));
  }

  /** Waits at the store for all members; the last one makes more requests. */
  #together(waiting: (() => void)[], requests: number, numAddresses: number, next: () => void): void {
    waiting.push(next);
    const isLast = waiting.length === this.#size;
    this.#ask(1, () => {
      if (!isLast) return;
      const goOn = () => {
        for (const go of waiting) go();
      };
      this.#ask(requests, goOn, numAddresses);
    });
  }

  /** Makes requests one after the other, the last with `numAddresses` addresses. */
  #ask(requests: number, answered: () => void, numAddresses = 0): void {
    const { storeS, addressS } = this.#costs;
    const isLast = requests === 1;
    this.#reach(storeS + (isLast ? numAddresses * addressS : 0), () =>
      isLast ? answered() : this.#ask(requests - 1, answered, numAddresses),
    );
  }

  /** Sends a request to the store, which works for `costS`, and receives the answer. */
  #reach(costS: number, answered: () => void): void {
    const { latencyS } = this.#costs;
    this.#time.at(this.#time.nowS + latencyS, () =>
      this.#store.work(costS, () => this.#time.at(this.#time.nowS + latencyS, answered)),
    );
  }
}

/**
 * Simulates the control messages of a run, one by one, on the event loops of `numRanks` processes and their head: the
 * start, one step, and a second of heartbeats. They take the product's own paths: the head starts each process and
 * connects peers; messages to ranks of another host pass that host's agent, and messages to all ranks go down a tree of
 * hosts; statistics go from rank to rank; hosts send the head heartbeats with their actors' states.
 */
export function simulateControl(shape: ControlShape, costs: ControlCosts): ControlSimulation {
  const control = new Control(shape, costs);
  const spawned = control.phase(() => control.spawn());
  const joined = control.phase(() => control.join());
  const ordered = control.phase(() => control.rounds(startOf(shape, costs)));
  // Each before the answer to an order.
  const joinedGroups = shape.groups.map((ofThread) => control.phase(() => control.joinGroups(ofThread)));
  const rendezvousS = joinedGroups.reduce((total, { tookS }) => total + tookS, 0);
  const step = control.phase(() => control.rounds(STEP));
  const statistics = control.phase(() => control.exchange());
  const beats = control.phase(() => control.beat());
  return {
    startS: spawned.tookS + joined.tookS + ordered.tookS + rendezvousS,
    spawnedS: spawned.tookS,
    joinedS: joined.tookS,
    orderedS: ordered.tookS,
    rendezvousS,
    stepS: step.tookS,
    statisticsS: statistics.tookS,
    stepMessages: step.numMessages,
    statisticsMessages: statistics.numMessages,
    headBusyS: step.busyS,
    heartbeatShare: beats.busyS / (HEARTBEATS * HEARTBEAT_S),
    numEvents: control.numEvents,
  };
}

/** An order to all ranks. */
interface Round {
  /** Extra cost of each message, at either end. */
  readonly weighsS: number;
  /** Extra cost for each host's first rank, which relays it. */
  readonly onceS?: number;
}

/**
 * The orders of a start: `join` with all ranks and shards, where each host's first starts a store; `declare` with ranks
 * and stores; `prepare`.
 */
function startOf(
  { numRanks, ranksPerHost }: ControlShape,
  { refS, storeNameS, storeStartS }: ControlCosts,
): Round[] {
  const numStores = numRanks > ranksPerHost ? Math.ceil(numRanks / ranksPerHost) : 0;
  return [
    { weighsS: 2 * numRanks * refS, onceS: storeStartS },
    { weighsS: numRanks * refS + numStores * storeNameS },
    { weighsS: 0 },
  ];
}

class Control {
  numEvents = 0;
  readonly #shape: ControlShape;
  readonly #costs: ControlCosts;
  readonly #time = new VirtualTime();
  readonly #head = new Loop(this.#time);
  readonly #ranks: readonly Loop[];
  /** By host; the head's own is first and relays nothing. */
  readonly #agents: readonly Loop[];
  #numMessages = 0;

  constructor(shape: ControlShape, costs: ControlCosts) {
    this.#shape = shape;
    this.#costs = costs;
    this.#ranks = Array.from({ length: shape.numRanks }, () => new Loop(this.#time));
    const numHosts = Math.ceil(shape.numRanks / shape.ranksPerHost);
    this.#agents = Array.from({ length: numHosts }, () => new Loop(this.#time));
  }

  /** Runs everything that `begin` starts, to its end. */
  phase(begin: () => void): { readonly tookS: number; readonly busyS: number; readonly numMessages: number } {
    const [beganS, busyS, numBefore] = [this.#time.nowS, this.#head.busyS, this.#numMessages];
    begin();
    this.numEvents += this.#time.run();
    return {
      tookS: this.#time.nowS - beganS,
      busyS: this.#head.busyS - busyS,
      numMessages: this.#numMessages - numBefore,
    };
  }

  /** Starts each rank's process through its host, and its actors, all of one kind after the other. */
  spawn(): void {
    const { sendS, spawnS, bootS, actorS, latencyS } = this.#costs;
    // Per wave: the cost of a rank's actors, besides the order for its process.
    const ofWaveS = Math.max(0, spawnS - sendS) / ACTOR_WAVES;
    let open = 0;
    const wave = (left: number): void => {
      open = this.#ranks.length;
      const isThere = () => {
        open -= 1;
        if (open === 0 && left > 1) wave(left - 1);
      };
      for (const rank of this.#ranks.keys()) {
        const start = () => this.#time.at(this.#time.nowS + 2 * latencyS + actorS, isThere);
        this.#head.work(ofWaveS, () => this.#pass(rank, ofWaveS, start));
      }
    };
    for (const [index] of this.#ranks.entries())
      this.#head.work(sendS, () => {
        if (index === this.#ranks.length - 1)
          this.#time.at(this.#time.nowS + 2 * latencyS + bootS, () => wave(ACTOR_WAVES));
      });
  }

  /** Connects peers through the head, at the request of one end each; the head will also report the first one that ends. */
  join(): void {
    const { numPeers, numRanks } = this.#shape;
    const { sendS, receiveS, refS, orderS, connectS } = this.#costs;
    // One link between each two peers, requested by one of them.
    const numLinks = Math.min(numPeers, numRanks - 1) / 2;
    for (const [index, rank] of this.#ranks.entries()) {
      this.#head.work(receiveS + numLinks * (refS + LINK_ORDERS * orderS));
      this.#pass(index, receiveS + sendS + numLinks * LINK_ORDERS * 2 * orderS);
      rank.work(sendS + numLinks * (refS + LINK_ORDERS * (orderS + connectS)));
    }
  }

  /** Relays a message between the head and a rank of another host through that host's agent. */
  #pass(rank: number, costS: number, done: () => void = () => {}): void {
    const host = Math.floor(rank / this.#shape.ranksPerHost);
    if (host === 0) done();
    else (this.#agents[host] as Loop).work(costS, done);
  }

  /** Sends orders to all ranks, each answered by all before the next. */
  rounds([round, ...later]: readonly Round[]): void {
    if (round === undefined) return;
    const { numRanks, ranksPerHost, fanOut } = this.#shape;
    const numHosts = Math.ceil(numRanks / ranksPerHost);
    const isTree = numHosts > 1;
    const top = isTree ? Math.min(numHosts, fanOut ?? numHosts) : numRanks;
    const each = (index: number, done: (numRanks: number) => void) =>
      isTree ? this.#host(index, numHosts, round, done) : done(1);
    this.#ask(
      this.#head,
      round.weighsS,
      Array.from({ length: top }, (_, index) => {
        const rank = isTree ? index * ranksPerHost : index;
        return { rank, isPassedOn: true, work: (done) => each(index, done) };
      }),
      () => this.rounds(later),
    );
  }

  /** A host's first rank sends to its ranks and the hosts below it, and answers for all of them. */
  #host(index: number, numHosts: number, round: Round, done: (numRanks: number) => void): void {
    const { numRanks, ranksPerHost, fanOut } = this.#shape;
    const first = index * ranksPerHost;
    const own = [...this.#ranks.keys()].slice(first, Math.min(first + ranksPerHost, numRanks));
    // As in a heap, with the head before the first.
    const below = Array.from({ length: fanOut ?? 0 }, (_, n) => (index + 1) * (fanOut ?? 0) + n);
    const asked = [
      ...below
        .filter((host) => host < numHosts)
        .map((host) => ({
          rank: host * ranksPerHost,
          work: (answered: (numRanks: number) => void) => this.#host(host, numHosts, round, answered),
        })),
      ...own.map((rank) => ({ rank, work: (answered: (numRanks: number) => void) => answered(1) })),
    ];
    const loop = this.#ranks[first] as Loop;
    this.#ask(loop, round.weighsS, asked, done);
    loop.work(round.onceS ?? 0);
  }

  /** Sends to each, and continues once all have answered, with the number of ranks. */
  #ask(
    by: Loop,
    weighsS: number,
    all: readonly {
      readonly rank: number;
      /** Whether the host's agent relays it, as for the head's messages. */
      readonly isPassedOn?: boolean;
      work(done: (numRanks: number) => void): void;
    }[],
    done: (numRanks: number) => void,
  ): void {
    let open = all.length;
    let total = 0;
    for (const { rank, isPassedOn = false, work } of all) {
      const loop = this.#ranks[rank] as Loop;
      const passing = isPassedOn ? rank : undefined;
      const answered = (numRanks: number) => {
        total += numRanks;
        open -= 1;
        if (open === 0) done(total);
      };
      // The price of a message includes one rank's part.
      const answer = (numRanks: number) =>
        this.#send(loop, by, (numRanks - 1) * this.#costs.partS, () => answered(numRanks), passing);
      this.#send(by, loop, weighsS, () => work(answer), passing);
    }
  }

  /**
   * @param weighsS - extra cost of the message, at either end
   * @param passing - the rank whose host's agent relays it
   */
  #send(from: Loop, to: Loop, weighsS: number, taken: () => void, passing?: number): void {
    const { sendS, receiveS, latencyS } = this.#costs;
    this.#numMessages += 1;
    const arrive = () => to.work(receiveS + weighsS, taken);
    from.work(sendS + weighsS, () =>
      this.#time.at(this.#time.nowS + latencyS, () =>
        passing === undefined ? arrive() : this.#pass(passing, receiveS + sendS, arrive),
      ),
    );
  }

  /**
   * Each rank sends its statistics to the members of its first hop; once it has theirs, it sends all of them to the
   * next hop's.
   */
  exchange(): void {
    const { hops } = this.#shape;
    const strides = hops.map((_, hop) => hops.slice(0, hop).reduce((product, size) => product * size, 1));
    // A faster rank may be a hop ahead: each rank counts what it has received per hop, and whether it has sent.
    const missing = hops.map((size) => this.#ranks.map(() => size));
    const tell = (hop: number, rank: number): void => {
      const [size, stride] = [hops[hop], strides[hop]];
      if (size === undefined || stride === undefined) return;
      const first = rank - (Math.floor(rank / stride) % size) * stride;
      for (let member = 0; member < size; member++) {
        const to = first + member * stride;
        if (to === rank) heard(hop, rank);
        else this.#send(this.#ranks[rank] as Loop, this.#ranks[to] as Loop, 0, () => heard(hop, to));
      }
    };
    const heard = (hop: number, rank: number): void => {
      const left = missing[hop] as number[];
      left[rank] = (left[rank] as number) - 1;
      if (left[rank] === 0) tell(hop + 1, rank);
    };
    for (const rank of this.#ranks.keys()) tell(0, rank);
  }

  /**
   * Ranks join the groups of one thread each, one after the other: every member asks its host's store for the others'
   * addresses, and connects to all.
   */
  joinGroups(ofRanks: readonly (readonly RendezvousGroup[])[]): void {
    const stores = new Map<number, Loop>();
    const rendezvous = new Map<RendezvousGroup, Rendezvous>();
    const storeOf = (host: number) => known(stores, host, () => new Loop(this.#time));
    const rendezvousOf = (group: RendezvousGroup) =>
      known(
        rendezvous,
        group,
        () => new Rendezvous(this.#time, storeOf(group.host), group.size, this.#costs),
      );
    const joinFrom = (rank: Loop, groups: readonly RendezvousGroup[], index: number): void => {
      const group = groups[index];
      if (group === undefined) return;
      const isKnown = groups[index - 1]?.host === group.host;
      rendezvousOf(group).join(rank, isKnown, () => joinFrom(rank, groups, index + 1));
    };
    for (const [place, rank] of this.#ranks.entries()) joinFrom(rank, ofRanks[place] ?? [], 0);
  }

  /** The head reads the states of all actors, sends each host a heartbeat and receives theirs. */
  beat(): void {
    const beginS = this.#time.nowS;
    for (let beat = 0; beat < HEARTBEATS; beat += 1)
      this.#time.at(beginS + beat * HEARTBEAT_S, () =>
        this.#head.work(this.#ranks.length * this.#costs.beatS),
      );
  }
}

/** Returns the map's value for a key; makes it if there is none. */
function known<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const value = map.get(key) ?? make();
  map.set(key, value);
  return value;
}
