import { VirtualTime } from "../../src/tools/planner/simulation/virtual-time.ts";

/** What control costs on a machine, in seconds of the event loop that does it. */
export interface ControlCosts {
  /** To send a message. */
  readonly sendS: number;
  /** To take one in. */
  readonly receiveS: number;
  /** Of one rank's part of a message that gathers what several have answered, at either end. */
  readonly partS: number;
  /** Of one of the actors that a message names, at either end. */
  readonly refS: number;
  /** Of an order from process to process, of which many go at once, at either end. */
  readonly orderS: number;
  /** Of the head, for the birth of a rank: of its process and the two actors in it. The agent of its host is taken to work as long. */
  readonly birthS: number;
  /** Of the head, for a process and heartbeat: how its actors are, and its part of its host's signs. */
  readonly beatS: number;
  /** Of one end of a connection, until it can be used. */
  readonly connectS: number;
  /** Of a host's first, to keep a store in which groups meet. */
  readonly keepS: number;
  /** Of a host's store that a message names, at either end. */
  readonly storeNameS: number;
  /** Of a store, to take in one who asks, and let it go. */
  readonly openS: number;
  /** Of the same, to answer one request. */
  readonly storeS: number;
  /** And for each member's address in an answer. */
  readonly addressS: number;
  /** Of a process, from its order until it can be given others: on its own host. */
  readonly bootS: number;
  /** Of an actor in it, from its order until it has started. */
  readonly actorS: number;
  /** Of the way. */
  readonly latencyS: number;
}

/** Who talks with whom. */
export interface ControlShape {
  readonly numRanks: number;
  /** Of each host, told by its first; 1: each rank by itself. */
  readonly ranksPerHost: number;
  /** How many hosts each passes on to; all are told by the head itself where left out. */
  readonly fanOut?: number;
  /**
   * How many exchange a step's statistics at once, hop after hop: the first that many neighbours, the next each so many of those apart,
   * and so on. Their product is the number of ranks.
   */
  readonly hops: readonly number[];
  /** With how many others each exchanges messages, those of the hops among them. */
  readonly numPeers: number;
  /**
   * The groups in which ranks meet: of the threads that join some, and that all come to before the next do, by rank, in the order in
   * which the rank's joins them. Members of a group have the same one.
   */
  readonly meetings: readonly (readonly (readonly MeetingGroup[])[])[];
}

/** Ranks that meet. */
export interface MeetingGroup {
  readonly size: number;
  /** The host in whose store they do, by number. */
  readonly host: number;
}

/** What control came to in virtual time. */
export interface ControlSimulation {
  /** From the first order until all ranks could take the first step, but for what jobs load. */
  readonly startS: number;
  /** Of that, until all processes were there. */
  readonly bornS: number;
  /** Of that, until those that exchange messages were joined. */
  readonly joinedS: number;
  /** Of that, what the orders of the start took. */
  readonly orderedS: number;
  /** Of that, what the groups' rendezvous took. */
  readonly metS: number;
  /** Between the order of a step and its last answer, nothing computed or exchanged. */
  readonly stepS: number;
  /** Until all have exchanged the statistics of a step. */
  readonly statisticsS: number;
  /** Orders and answers of one step, all ranks together. */
  readonly stepMessages: number;
  /** Messages that bring statistics, of one step and all ranks together. */
  readonly statisticsMessages: number;
  /** For how long the head's event loop is busy with one step's control. */
  readonly headBusyS: number;
  /** Share of its time that the head's event loop spends with signs of life. */
  readonly heartbeatShare: number;
  readonly numEvents: number;
}

/** Orders that are answered, of one step: compute, update. */
const STEP = [{ weighsS: 0 }, { weighsS: 0 }];
/** Of a rank: all shards are started, and once they are there all ranks. */
const ACTOR_WAVES = 2;
/** Of a link between two actors: each one's process is told. */
const LINK_ORDERS = 2;
/**
 * What a member of a group asks the store of c10d (`native/comm/rendezvous.cc`): whether its size and its place are right, and to be
 * counted; the last one for all addresses, to wait for them first, and to keep them as one. Then each waits for that and
 * has it. Once it is connected it says so, is counted and waits for all.
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

  /** Has it do something that takes so long, once it has done all before, and then `done`. */
  work(costS: number, done: () => void = () => {}): void {
    this.#freeS = Math.max(this.#freeS, this.#time.nowS) + costS;
    this.busyS += costS;
    this.#time.at(this.#freeS, done);
  }
}

/** One group's members, as they come to the store. */
class Meeting {
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
   * Goes on once all members are connected.
   * @param isKnown - whether the store is: a thread's next group uses the connection of the one before
   */
  meet(rank: Loop, isKnown: boolean, done: () => void): void {
    const { openS, addressS, connectS, latencyS } = this.#costs;
    // One connection after the other, of which it makes every other one itself: there and back.
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

  /** Waits at the store until all members do, the last of which asks something more. */
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

  /** Requests one after the other, the last of them about so many addresses. */
  #ask(requests: number, answered: () => void, numAddresses = 0): void {
    const { storeS, addressS } = this.#costs;
    const isLast = requests === 1;
    this.#reach(storeS + (isLast ? numAddresses * addressS : 0), () =>
      isLast ? answered() : this.#ask(requests - 1, answered, numAddresses),
    );
  }

  /** To the store, which works for so long, and back. */
  #reach(costS: number, answered: () => void): void {
    const { latencyS } = this.#costs;
    this.#time.at(this.#time.nowS + latencyS, () =>
      this.#store.work(costS, () => this.#time.at(this.#time.nowS + latencyS, answered)),
    );
  }
}

/**
 * Runs what the actors of a run say to each other beside their work, message by message, on the event loops of `numRanks` processes and
 * their head: the start, one step, and a second of heartbeats. It is the product's own way: the head starts each process and joins those
 * that talk; what it says to ranks of another host passes that host's agent, and what it says to all goes along a tree of hosts;
 * statistics go from rank to rank; hosts give the head signs of life, with how their actors are.
 */
export function simulateControl(shape: ControlShape, costs: ControlCosts): ControlSimulation {
  const control = new Control(shape, costs);
  const born = control.phase(() => control.bear());
  const joined = control.phase(() => control.join());
  const ordered = control.phase(() => control.rounds(startOf(shape, costs)));
  // Each of them before the answer to an order.
  const met = shape.meetings.map((ofThread) => control.phase(() => control.meet(ofThread)));
  const metS = met.reduce((total, { tookS }) => total + tookS, 0);
  const step = control.phase(() => control.rounds(STEP));
  const statistics = control.phase(() => control.exchange());
  const beats = control.phase(() => control.beat());
  return {
    startS: born.tookS + joined.tookS + ordered.tookS + metS,
    bornS: born.tookS,
    joinedS: joined.tookS,
    orderedS: ordered.tookS,
    metS,
    stepS: step.tookS,
    statisticsS: statistics.tookS,
    stepMessages: step.numMessages,
    statisticsMessages: statistics.numMessages,
    headBusyS: step.busyS,
    heartbeatShare: beats.busyS / (HEARTBEATS * HEARTBEAT_S),
    numEvents: control.numEvents,
  };
}

/** An order to all. */
interface Round {
  /** What each message takes at either end beside any message. */
  readonly weighsS: number;
  /** What each host's first does that passes it on, beside. */
  readonly onceS?: number;
}

/** Who there is, ranks and shards, of which each host's first keeps a store; declare, by ranks and those stores; prepare. */
function startOf(
  { numRanks, ranksPerHost }: ControlShape,
  { refS, storeNameS, keepS }: ControlCosts,
): Round[] {
  const numStores = numRanks > ranksPerHost ? Math.ceil(numRanks / ranksPerHost) : 0;
  return [
    { weighsS: 2 * numRanks * refS, onceS: keepS },
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
  /** Of each host, the head's own first, whose agent passes nothing on. */
  readonly #agents: readonly Loop[];
  #numMessages = 0;

  constructor(shape: ControlShape, costs: ControlCosts) {
    this.#shape = shape;
    this.#costs = costs;
    this.#ranks = Array.from({ length: shape.numRanks }, () => new Loop(this.#time));
    const numHosts = Math.ceil(shape.numRanks / shape.ranksPerHost);
    this.#agents = Array.from({ length: numHosts }, () => new Loop(this.#time));
  }

  /** Runs to its end what `begin` begins. */
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

  /** The head has each rank's process started by its host, and its actors, of one kind after the other. */
  bear(): void {
    const { sendS, birthS, bootS, actorS, latencyS } = this.#costs;
    // Of each rank's birth: its order, and what comes with each of its actors.
    const ofWaveS = Math.max(0, birthS - sendS) / ACTOR_WAVES;
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

  /** Those that exchange messages are joined by the head, of which each asks it for some; and that it tells of the first that ends. */
  join(): void {
    const { numPeers, numRanks } = this.#shape;
    const { sendS, receiveS, refS, orderS, connectS } = this.#costs;
    // Between two of them one link, for which one of the two asks.
    const numLinks = Math.min(numPeers, numRanks - 1) / 2;
    for (const [index, rank] of this.#ranks.entries()) {
      this.#head.work(receiveS + numLinks * (refS + LINK_ORDERS * orderS));
      this.#pass(index, receiveS + sendS + numLinks * LINK_ORDERS * 2 * orderS);
      rank.work(sendS + numLinks * (refS + LINK_ORDERS * (orderS + connectS)));
    }
  }

  /** What the head and a rank of another host say to each other is passed on by the agent of that, which takes it so long. */
  #pass(rank: number, costS: number, done: () => void = () => {}): void {
    const host = Math.floor(rank / this.#shape.ranksPerHost);
    if (host === 0) done();
    else (this.#agents[host] as Loop).work(costS, done);
  }

  /** Orders to all, each answered by all before the next. */
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

  /** A host's first tells its ranks and the hosts below it, and answers for all of them. */
  #host(index: number, numHosts: number, round: Round, done: (numRanks: number) => void): void {
    const { numRanks, ranksPerHost, fanOut } = this.#shape;
    const first = index * ranksPerHost;
    const own = [...this.#ranks.keys()].slice(first, Math.min(first + ranksPerHost, numRanks));
    // As in a heap, the head before the first.
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

  /** Asks each, and goes on once all have answered: with for how many ranks. */
  #ask(
    by: Loop,
    weighsS: number,
    all: readonly {
      readonly rank: number;
      /** Whether the agent of its host passes it on: the head asks. */
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
      // One rank's part alone is in the message's price.
      const answer = (numRanks: number) =>
        this.#send(loop, by, (numRanks - 1) * this.#costs.partS, () => answered(numRanks), passing);
      this.#send(by, loop, weighsS, () => work(answer), passing);
    }
  }

  /**
   * @param weighsS - what it takes at either end beside any message
   * @param passing - the rank whose host's agent passes it on
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

  /** Each rank tells its statistics to those of its first hop; once it has theirs, all of that to those of the next. */
  exchange(): void {
    const { hops } = this.#shape;
    const strides = hops.map((_, hop) => hops.slice(0, hop).reduce((product, size) => product * size, 1));
    // A faster one may tell of a hop that this one has not come to: each counts what it has heard, and that it has told.
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

  /** The ranks meet in the groups of a thread of each, one after the other: what was left in a host's store by all of a group each asks for at once, and connects to all. */
  meet(ofRanks: readonly (readonly MeetingGroup[])[]): void {
    const stores = new Map<number, Loop>();
    const meetings = new Map<MeetingGroup, Meeting>();
    const storeOf = (host: number) => known(stores, host, () => new Loop(this.#time));
    const meetingOf = (group: MeetingGroup) =>
      known(meetings, group, () => new Meeting(this.#time, storeOf(group.host), group.size, this.#costs));
    const meetFrom = (rank: Loop, groups: readonly MeetingGroup[], index: number): void => {
      const group = groups[index];
      if (group === undefined) return;
      const isKnown = groups[index - 1]?.host === group.host;
      meetingOf(group).meet(rank, isKnown, () => meetFrom(rank, groups, index + 1));
    };
    for (const [place, rank] of this.#ranks.entries()) meetFrom(rank, ofRanks[place] ?? [], 0);
  }

  /** The head takes in how all actors are, gives each host a sign and takes in theirs. */
  beat(): void {
    const beginS = this.#time.nowS;
    for (let beat = 0; beat < HEARTBEATS; beat += 1)
      this.#time.at(beginS + beat * HEARTBEAT_S, () =>
        this.#head.work(this.#ranks.length * this.#costs.beatS),
      );
  }
}

/** What a map has of a key, made where it has none. */
function known<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const value = map.get(key) ?? make();
  map.set(key, value);
  return value;
}
