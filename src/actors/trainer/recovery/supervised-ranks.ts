import { errorTable, type TroupeError } from "../../../errors/index.ts";
import type { LayoutSettings, OffloadSettings } from "../../../job/options/index.ts";
import { changedFiles } from "../../../library/data/index.ts";
import {
  type ActorInspection,
  type ActorSystem,
  type ChildSpec,
  type Failure,
  firstCause,
  type SiblingRefs,
  type Supervisor,
  toFailure,
} from "../../../runtime/index.ts";
import type { ModuleTexts } from "../../../runtime/module-texts.ts";
import { actorModules } from "../../index.ts";
import type * as protocol from "../../protocols/index.ts";
import { Generations } from "./generations.ts";

/** Options of a rank group. */
export interface RankSpread extends Pick<LayoutSettings, "ranks" | "placement" | "hosts"> {
  /** Begins the names of its actors and processes. */
  readonly prefix: string;
  /** If the optimizer is offloaded, each shard has an offload actor. */
  readonly offload: OffloadSettings;
  /** The folder to which each rank's process writes its share of a save; left out, the checkpointer writes everything. */
  readonly slicesTo: string | undefined;
  /** Whether each generation computes in processes of its own, even where the last one's are in order. */
  readonly freshProcess: boolean;
  /** Whether each actor gets a warm standby that can replace it. */
  readonly warmStandby: boolean;
  /** The user's modules as the run loaded them; actors started later load the same texts. */
  readonly modules: ModuleTexts;
}

/** After this long a generation has finished starting, so loading modules for standbys no longer disturbs it. */
const CALM_MS = 2_000;

/** After this long a live generation has: its first calls, and those that it makes again, come before its standbys. */
const LIVE_CALM_MS = 100;

/** With less free memory than this no standby is started. */
const SPARE_BYTES = 2 ** 30;

/**
 * The rank group under supervision: a feeder, and a shard and a rank for each rank of the world, each in a thread;
 * optionally each pair in a process of its own. When one ends, all are restarted (one_for_all), since the state of a
 * step is spread over them; but the feeder, which has none, goes on unless a file of its data has changed. After too many restarts the group is given up.
 */
export class SupervisedRanks {
  readonly #system: ActorSystem;
  readonly #supervisor: Supervisor;
  readonly #spread: RankSpread;
  readonly #generations: Generations;
  /** When the next look is due for a standby to start. */
  #lookAtMs = 0;

  private constructor(
    system: ActorSystem,
    supervisor: Supervisor,
    spread: RankSpread,
    generations: Generations,
  ) {
    this.#system = system;
    this.#supervisor = supervisor;
    this.#spread = spread;
    this.#generations = generations;
  }

  /**
   * Starts the group, and starts it again where an actor of it dies as it starts; `feeder` makes arguments of each feeder.
   * @param maxRestarts - the most within five minutes, and at the start
   * @throws the error of the first actor that cannot start
   */
  static async start(
    system: ActorSystem,
    spread: RankSpread,
    feeder: () => protocol.FeederInit,
    maxRestarts: number,
  ): Promise<SupervisedRanks> {
    const generations = new Generations();
    const supervisor = await startThroughDeaths(maxRestarts, () =>
      system.supervise({
        name: `${spread.prefix}ranks`,
        strategy: "one_for_all",
        restarts: maxRestarts,
        children: membersOf(spread, feeder),
        onRestart: ({ cause }) => generations.begin(cause),
        onEscalate: (cause) => generations.giveUp(cause),
      }),
    );
    return new SupervisedRanks(system, supervisor, spread, generations);
  }

  /** The actors of the present generation. Messages to these refs never reach a later generation. */
  get group(): protocol.RankGroup {
    const { prefix, ranks, slicesTo } = this.#spread;
    const places = placesOf(ranks);
    const refTo = <P>(name: string) => this.#supervisor.ref<P>(prefix + name).pinned();
    return {
      feeder: refTo<protocol.FeederProtocol>("feeder"),
      ranks: places.map((rank) => refTo<protocol.RankProtocol>(`rank-${rank}`)),
      writers: (slicesTo === undefined ? [] : places).map((rank) =>
        refTo<protocol.SliceWriterProtocol>(`writer-${rank}`),
      ),
      shards: places.map((rank) => refTo<protocol.ShardProtocol>(`shard-${rank}`)),
    };
  }

  /** Whether the group has an actor of that name. */
  has(actor: string): boolean {
    return Object.values(this.group)
      .flat()
      .some(({ name }) => name === actor);
  }

  /** The host of each rank in the present generation; 0 is this host. */
  get hosts(): readonly number[] {
    return this.group.ranks.map((rank) => this.#system.hostOf(rank));
  }

  /** Number of the present generation, from 0. */
  get generation(): number {
    return this.#generations.present;
  }

  /** Resolves once `generation` has a successor, with the failure that ended it. @throws the cause if the group was given up */
  generationAfter(generation: number): Promise<Failure | undefined> {
    return this.#generations.after(generation);
  }

  /** Notes a step. Once the generation has run for a while, each step prepares one more warm standby. */
  madeStep(): void {
    const nowMs = performance.now();
    if (this.#generations.madeStep(nowMs) < CALM_MS || nowMs < this.#lookAtMs) return;
    // Where none is left to start: free memory is read from files.
    if (!this.#prepareStandby()) this.#lookAtMs = nowMs + CALM_MS;
  }

  /** Notes that a generation has its state. @param isLive - whether a script makes the steps, which may wait for long between them */
  arePrepared(isLive: boolean): void {
    if (!isLive) return;
    // All at once: each is needed for a restart without loading.
    const prepare = () => {
      if (this.#prepareStandby()) prepare();
    };
    setTimeout(prepare, LIVE_CALM_MS).unref();
  }

  #prepareStandby(): boolean {
    const isRoom = this.#spread.warmStandby && process.availableMemory() > SPARE_BYTES;
    return isRoom && this.#supervisor.prepareStandby();
  }

  /** Notes progress: earlier restarts no longer count. */
  forgiveRestarts(): void {
    this.#supervisor.forgiveRestarts();
  }

  /** Ends the present generation on purpose; resolves once the next one has begun. */
  async renew(): Promise<void> {
    const { generation } = this;
    await this.#supervisor.restart();
    await this.#generations.after(generation);
  }

  /**
   * Ends a stuck actor of the group, and with it the generation. A process is killed; a thread is terminated, which
   * native code can delay: if it delays it for ever, the group is given up.
   * @param failure - why the generation ends
   */
  async end({ actor }: Pick<ActorInspection, "actor">, failure: TroupeError): Promise<void> {
    const ref = this.#supervisor.ref(actor).pinned();
    const place = await this.#system.stackOf(ref);
    if (place !== undefined) failure.stack = `${failure.name}: ${failure.message}\n${place}`;
    const ended = this.#system.stopActor(ref, { drain: false, deadlineMs: 0, failure });
    this.#system.killProcessOf(ref);
    await ended;
  }

  /** Does as {@link end} to the first rank. */
  endFirst(failure: TroupeError): Promise<void> {
    return this.end({ actor: `${this.#spread.prefix}rank-0` }, failure);
  }

  /** Gives the group up: callers that wait for its next generation get `cause`. */
  abandon(cause: TroupeError): void {
    this.#generations.giveUp(toFailure(cause));
  }
}

/** @throws the first error: at once where it was thrown on purpose, since another start would repeat it */
async function startThroughDeaths<T>(maxRestarts: number, start: () => Promise<T>): Promise<T> {
  let first: unknown;
  for (let numFailed = 1; ; numFailed++)
    try {
      return await start();
    } catch (error) {
      first ??= error;
      const { code } = firstCause(toFailure(error));
      const isDeath = code === undefined || !(code in errorTable) || code === "PROCESS_START_FAILED";
      if (!isDeath || numFailed > maxRestarts) throw first;
    }
}

/** The group's actors in starting order, by kind: each has the refs of those before it that it works with. */
function membersOf(
  { prefix, ranks, placement, hosts, offload, slicesTo, freshProcess, modules }: RankSpread,
  feeder: () => protocol.FeederInit,
): readonly (ChildSpec | readonly ChildSpec[])[] {
  const { jobUrl } = feeder();
  const loading = (...moduleUrls: string[]) => ({
    modules,
    standbyModules: moduleUrls.map((url) => new URL(url)),
  });
  const ofRanks = (
    role: string,
    module: URL,
    init: (rank: number) => NonNullable<ChildSpec["init"]>,
    ...urls: string[]
  ) =>
    placesOf(ranks).map((rank) => ({
      name: `${prefix}${role}-${rank}`,
      role,
      index: rank,
      module,
      ...(placement === "process" && { placement, process: `${prefix}rank-${rank}`, freshProcess }),
      ...(hosts && { host: hosts[Math.floor((rank * hosts.length) / ranks)] as number }),
      ...loading(...urls),
      init: init(rank),
    }));
  const writer = (directory: string) => (rank: number) => (): protocol.SliceWriterInit => ({
    rank,
    directory,
  });
  const shard =
    (rank: number) =>
    (_incarnation: number, refs: SiblingRefs): protocol.ShardInit => ({
      rank,
      offload: offload.optimizer && refs<protocol.OffloadProtocol>(`${prefix}offload-${rank}`),
    });
  const rank =
    (rank: number) =>
    (_incarnation: number, refs: SiblingRefs): protocol.RankInit => ({
      rank,
      shard: refs<protocol.ShardProtocol>(`${prefix}shard-${rank}`),
      feeder: refs<protocol.FeederProtocol>(`${prefix}feeder`),
    });
  return [
    {
      name: `${prefix}feeder`,
      role: "feeder",
      module: actorModules.feeder,
      // It dies seldom, so that no standby waits for it. A new one compares its data with what the run began with.
      outlives: () => changedFiles(feeder().begun?.files ?? {}).length === 0,
      modules,
      init: feeder,
    },
    offload.optimizer === undefined ? [] : ofRanks("offload", actorModules.offload, () => () => undefined),
    slicesTo === undefined ? [] : ofRanks("writer", actorModules.sliceWriter, writer(slicesTo)),
    ofRanks("shard", actorModules.shard, shard),
    ofRanks("rank", actorModules.rank, rank, jobUrl),
  ];
}

function placesOf(numRanks: number): readonly number[] {
  return Array.from({ length: numRanks }, (_, rank) => rank);
}
