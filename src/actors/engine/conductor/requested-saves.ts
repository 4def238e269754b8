import { type ActorRef, AskTimeout } from "../../../runtime/index.ts";
import type { RankProtocol } from "../../protocols/index.ts";
import type { Broadcast } from "../relay/index.ts";
import type { RunControl, SaveRequest } from "./run-control.ts";
import type { BegunSave, SaveReasons, Saving } from "./saving.ts";

/** The longest time of a timer, over three weeks. A question that has waited for that long is asked again. */
const FOR_EVER_MS = 2 ** 31 - 1;

/** The parts of a conductor that save. */
export interface RequestedSavesOptions {
  readonly control: RunControl;
  readonly all: Broadcast;
  /** Decides whether a state is saved; returns undefined in a run that saves nothing. */
  readonly saving: () => Saving | undefined;
}

/** Begins the saves of one generation, and answers with their outcomes the requests of the run's control and of the ranks' code. */
export class RequestedSaves {
  readonly #options: RequestedSavesOptions;
  /** Requests that a save of this generation will answer. */
  readonly #asked = new Set<SaveRequest>();

  constructor(options: RequestedSavesOptions) {
    this.#options = options;
  }

  /** Begins the save of the state after `step` updates, the last of which is about to be granted. */
  async begin(step: number, isLast: boolean): Promise<BegunSave | undefined> {
    const { control } = this.#options;
    const asked = this.#newRequests();
    const wanted = control.wantedState(step);
    const isAsked = asked.length > 0 || wanted !== undefined;
    const save = await this.#begin(asked, step, { isLast, isAsked, ...wanted });
    if (wanted !== undefined && save !== undefined) void control.stateSaved(step, save.outcome);
    return save;
  }

  /** Makes the saves that one rank's code requests, one after the other. @throws when the rank ends */
  async listen(rank: ActorRef<RankProtocol>): Promise<void> {
    const { control } = this.#options;
    for (;;) {
      const asked = await rank.ask("wanted", {}, { deadlineMs: FOR_EVER_MS }).catch(unlessLate);
      if (asked === undefined) continue;
      const { step, named } = asked;
      control.wantState(step, named);
      const save = await this.now(step, { isAsked: true, isPresent: true, named });
      if (save !== undefined) void control.stateSaved(step, save.outcome);
      rank.tell("heard", {});
    }
  }

  /** Saves the state after `step` updates if a save is requested, with no further update under way. */
  async asked(step: number): Promise<void> {
    const asked = this.#newRequests();
    if (asked.length > 0) await this.now(step, { isLast: true, isAsked: true }, asked);
  }

  /**
   * Saves the state after `step` updates, the last completed, for the requests `asked`.
   * @returns once every shard keeps that state; undefined where it is not saved
   */
  async now(
    step: number,
    reasons: SaveReasons,
    asked: readonly SaveRequest[] = [],
  ): Promise<BegunSave | undefined> {
    const { all } = this.#options;
    const save = await this.#begin(asked, step, reasons);
    const receivers = save?.receivers;
    const [checkpointer] = receivers ?? [];
    if (receivers === undefined || checkpointer === undefined) return save;
    const own = receivers.map((receiver) => ({ checkpointer: receiver }));
    await all.tell("shards", "snapshot", { step: step - 1, checkpointer }, own);
    await all.ask("shards", "noted", {});
    return save;
  }

  async #begin(
    asked: readonly SaveRequest[],
    step: number,
    reasons: SaveReasons,
  ): Promise<BegunSave | undefined> {
    const save = await this.#options.saving()?.begin(step, reasons);
    if (save === undefined) return undefined;
    for (const request of asked) this.#asked.add(request);
    void this.#options.control.answer(asked, save.outcome);
    return save;
  }

  #newRequests(): SaveRequest[] {
    return this.#options.control.openSaves.filter((request) => !this.#asked.has(request));
  }
}

/** Ignores that an answer did not come in time; throws any other error. */
function unlessLate(error: unknown): undefined {
  if (!(error instanceof AskTimeout)) throw error;
}
