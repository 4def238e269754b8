import type { TroupeError } from "../../../errors/index.ts";
import type { LayoutSettings, OffloadSettings } from "../../../job/options/index.ts";
import {
  type ActorInspection,
  type ActorSystem,
  type ChildSpec,
  type Failure,
  type SiblingRefs,
  type Supervisor,
  toFailure,
} from "../../../runtime/index.ts";
import type { ModuleTexts } from "../../../runtime/module-texts.ts";
import { actorModules } from "../../index.ts";
import type {
  FeederInit,
  FeederProtocol,
  OffloadProtocol,
  RankGroup,
  RankInit,
  RankProtocol,
  ShardInit,
  ShardProtocol,
  SliceWriterInit,
  SliceWriterProtocol,
} from "../../protocols/index.ts";
import { Generations } from "./generations.ts";

/** What a rank group is spread over. */
export interface RankSpread extends Pick<LayoutSettings, "ranks" | "placement"> {
  /** Where it has to do with the optimizer, each shard has an offload actor at its side. */
  readonly offload: OffloadSettings;
  /** The folder into which each rank's process writes what its rank saves; the checkpointer writes all where left out. */
  readonly slicesTo: string | undefined;
  /** Whether others wait to take their places. */
  readonly warmStandby: boolean;
  /** The user's modules as the run began with them: what is started later loads no others. */
  readonly modules: ModuleTexts;
}

/** A generation that has made steps for so long has its own start behind it: what loads its modules now is in nobody's way. */
const CALM_MS = 2_000;

/**
 * The rank group under supervision: a feeder, and for every place a shard and a rank, a thread each; each pair in a process
 * of its own where that is asked for. When one ends, all are started again (one_for_all), since the state of a step is
 * spread over them; after too many restarts the group is given up.
 */
export class SupervisedRanks {
  readonly #system: ActorSystem;
  readonly #supervisor: Supervisor;
  readonly #numRanks: number;
  readonly #hasWriters: boolean;
  readonly #generations: Generations;

  private constructor(
    system: ActorSystem,
    supervisor: Supervisor,
    { ranks, slicesTo }: RankSpread,
    generations: Generations,
  ) {
    this.#system = system;
    this.#supervisor = supervisor;
    this.#numRanks = ranks;
    this.#hasWriters = slicesTo !== undefined;
    this.#generations = generations;
  }

  /**
   * Starts the group.
   * @param feeder - what each of its feeders is started with
   * @param maxRestarts - how often it may be started again within five minutes
   * @throws what the first actor that cannot start threw
   */
  static async start(
    system: ActorSystem,
    spread: RankSpread,
    feeder: () => FeederInit,
    maxRestarts: number,
  ): Promise<SupervisedRanks> {
    const generations = new Generations();
    const supervisor = await system.supervise({
      name: "ranks",
      strategy: "one_for_all",
      restarts: maxRestarts,
      children: membersOf(spread, feeder),
      onRestart: ({ cause }) => generations.begin(cause),
      onEscalate: (cause) => generations.giveUp(cause),
    });
    return new SupervisedRanks(system, supervisor, spread, generations);
  }

  /** The actors of the present generation, and of no other: what is meant for this generation never reaches the next. */
  get group(): RankGroup {
    const places = placesOf(this.#numRanks);
    return {
      feeder: this.#supervisor.ref<FeederProtocol>("feeder").pinned(),
      ranks: places.map((rank) => this.#supervisor.ref<RankProtocol>(`rank-${rank}`).pinned()),
      writers: this.#hasWriters
        ? places.map((rank) => this.#supervisor.ref<SliceWriterProtocol>(`writer-${rank}`).pinned())
        : [],
      shards: places.map((rank) => this.#supervisor.ref<ShardProtocol>(`shard-${rank}`).pinned()),
    };
  }

  /** By rank, the host on which it lives in the present generation: 0 for this one. */
  get hosts(): readonly number[] {
    return this.group.ranks.map((rank) => this.#system.hostOf(rank));
  }

  /** Which generation the group is in, counted from 0. */
  get generation(): number {
    return this.#generations.present;
  }

  /**
   * Resolves once the group works again after its generation number `generation`, with what ended that generation.
   * @throws the first cause, when the group was given up
   */
  generationAfter(generation: number): Promise<Failure | undefined> {
    return this.#generations.after(generation);
  }

  /** A step was made. With each of them one more actor gets its warm standby, once the generation has gone on for a while. */
  madeStep(): void {
    if (this.#generations.madeStep(performance.now()) >= CALM_MS) this.#supervisor.prepareStandby();
  }

  /** The group makes progress again: earlier restarts do not count any more. */
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
   * Ends an actor of the group that stands still, and with it its generation. A process is killed; a thread is made to end, which
   * native code in it can put off: where it does for ever, the group is given up.
   * @param failure - why: what the generation has ended by
   */
  async end({ actor }: Pick<ActorInspection, "actor">, failure: TroupeError): Promise<void> {
    const ref = this.#supervisor.ref(actor).pinned();
    const place = await this.#system.stackOf(ref);
    if (place !== undefined) failure.stack = `${failure.name}: ${failure.message}\n${place}`;
    const ended = this.#system.stopActor(ref, { drain: false, deadlineMs: 0, failure });
    this.#system.killProcessOf(ref);
    await ended;
  }

  /** The group is being stopped for good: whoever waits for its next generation gets `cause`. */
  abandon(cause: TroupeError): void {
    this.#generations.giveUp(toFailure(cause));
  }
}

/** The group's actors, in the order in which they are started, one of each rank at once: each knows those before it that it works with. */
function membersOf(
  { ranks, placement, offload, slicesTo, warmStandby, modules }: RankSpread,
  feeder: () => FeederInit,
): readonly (ChildSpec | readonly ChildSpec[])[] {
  const places = placesOf(ranks);
  const placeOf = (rank: number) => (placement === "process" ? { placement, process: `rank-${rank}` } : {});
  const { jobUrl } = feeder();
  const loading = (...moduleUrls: string[]) => ({
    modules,
    ...(warmStandby && { standbyModules: moduleUrls.map((url) => new URL(url)) }),
  });
  return [
    {
      name: "feeder",
      role: "feeder",
      module: actorModules.feeder,
      ...loading(jobUrl),
      init: feeder,
    },
    (offload.optimizer === undefined ? [] : places).map((rank) => ({
      name: `offload-${rank}`,
      role: "offload",
      index: rank,
      module: actorModules.offload,
      ...placeOf(rank),
      ...loading(),
      init: () => undefined,
    })),
    (slicesTo === undefined ? [] : places).map((rank) => ({
      name: `writer-${rank}`,
      role: "writer",
      index: rank,
      module: actorModules.sliceWriter,
      ...placeOf(rank),
      ...loading(),
      init: (): SliceWriterInit => ({ rank, directory: slicesTo as string }),
    })),
    places.map((rank) => ({
      name: `shard-${rank}`,
      role: "shard",
      index: rank,
      module: actorModules.shard,
      ...placeOf(rank),
      ...loading(),
      init: (_incarnation: number, refs: SiblingRefs): ShardInit => ({
        rank,
        offload: offload.optimizer && refs<OffloadProtocol>(`offload-${rank}`),
      }),
    })),
    places.map((rank) => ({
      name: `rank-${rank}`,
      role: "rank",
      index: rank,
      module: actorModules.rank,
      ...placeOf(rank),
      ...loading(jobUrl),
      init: (_incarnation: number, refs: SiblingRefs): RankInit => ({
        rank,
        shard: refs<ShardProtocol>(`shard-${rank}`),
        feeder: refs<FeederProtocol>("feeder"),
      }),
    })),
  ];
}

function placesOf(numRanks: number): readonly number[] {
  return Array.from({ length: numRanks }, (_, rank) => rank);
}
