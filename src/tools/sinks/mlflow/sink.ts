import { randomUUID } from "node:crypto";
import { readdirSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { EventOf, EventSink, TellTrouble, TroupeEvent } from "../../../job/events/index.ts";
import { curveOf, pointsOf } from "../curves.ts";
import { RequestQueue, RequestRefused } from "../request-queue.ts";
import { settingsOf } from "../settings.ts";
import { SystemMeter } from "../system-figures.ts";
import { type Environment, MlflowClient } from "./client.ts";
import { type Ask, type Entry, Journal, type Metric, MOST_METRICS, sizeOf } from "./journal.ts";

/** Options of an MLflow sink. */
export interface MlflowOptions {
  /** Address of the server. */
  readonly url: string;
  /**
   * The run's folder. A file in it has the figures that the server has not taken, and says which MLflow run it is, for when the run is
   * resumed.
   */
  readonly folder?: string | undefined;
  /** Whether the files of each checkpoint are sent as artifacts. Default: false; a tag says where it is. */
  readonly checkpoints?: boolean;
  /** Default: the process's. */
  readonly environment?: Environment;
}

/** The most parameters of a request that MLflow takes. */
const MOST_PARAMS = 100;
const MOST_VALUE = 500;
/** The values of a metric that are asked for at once. Some servers give none where no number is named. */
const MOST_HISTORY = 10_000;
const FLUSH_MS = 1_000;
/** How long the end of a run waits for a server. */
const PATIENCE_MS = 60_000;

/**
 * Tracks runs on an MLflow server: settings as parameters, figures as metrics, the machine's as `system/…`, checkpoints as
 * artifacts. Each run is an MLflow run; one that is resumed goes on in its own. Requests are sent beside the run, each until it is
 * answered: a server that is down for a while gets every figure once, and so does one that was down when the run was killed, once
 * that is resumed. `MLFLOW_EXPERIMENT_NAME`, `MLFLOW_RUN_ID`, `MLFLOW_RUN_NAME` and the credentials are read from the environment.
 * @throws {TroupeError} `SINK` if the address is none, or holds a password
 */
export function mlflowSink(options: MlflowOptions): EventSink {
  return new MlflowSink(options);
}

/** A figure by its curve's name. */
type Figure = readonly [key: string, value: number];

/** An MLflow run: its id, and the address of its artifacts, once they are known. */
interface TrackedRun {
  id?: string | undefined;
  artifacts?: string;
}

/** A page of a metric's values. */
interface History {
  readonly metrics?: readonly Metric[];
  readonly next_page_token?: string;
}

class MlflowSink implements EventSink {
  readonly closeDeadlineMs = PATIENCE_MS + FLUSH_MS;
  readonly #options: MlflowOptions;
  readonly #environment: Environment;
  readonly #client: MlflowClient;
  readonly #queue: RequestQueue;
  readonly #journal: Journal;
  readonly #meter = new SystemMeter();
  /** The run that goes on; its first request fills it in. */
  #run: TrackedRun | undefined;
  #metrics: Metric[] = [];
  /** The latest step of each curve before the run was resumed or restored: its steps are made again, to the same figures. */
  #made: ReadonlyMap<string, number> = new Map();
  #step = 0;
  #hasEnded = false;
  #timer: NodeJS.Timeout | undefined;
  /** The folder that checkpoints lie in. */
  #checkpoints: string | undefined;

  constructor(options: MlflowOptions) {
    const { url, folder, environment = process.env } = options;
    this.#options = options;
    this.#environment = environment;
    this.#client = new MlflowClient(url, environment);
    this.#queue = new RequestQueue(`the MLflow server at ${url}`, folder);
    this.#journal = new Journal(folder, url);
  }

  attach(tell: TellTrouble): void {
    this.#queue.onTrouble(tell);
  }

  write(event: TroupeEvent): void {
    if (event.kind === "run.started") this.#begin(event);
    if (this.#run === undefined) return; // it failed before it began
    if (event.kind === "run.restored") this.#made = new Map(this.#journal.steps);
    if ("step" in event && event.kind !== "activity.finished") this.#step = event.step;
    const figures = pointsOf(event).map((point): Figure => [nameOf(curveOf(point)), point.value]);
    const machine = event.kind === "step.finished" ? this.#meter.readDue(event.timeMs) : undefined;
    const measured = Object.entries(machine ?? {}).map(([name, value]): Figure => [`system/${name}`, value]);
    this.#add(figures, event.timeMs);
    this.#add(measured, event.timeMs);
    if (event.kind === "checkpoint.saved") this.#saved(event);
    if (event.kind === "run.finished") this.#end("FINISHED", event.timeMs);
    if (event.kind === "run.failed") this.#end("FAILED", event.timeMs);
    if (event.kind === "run.interrupted") this.#end("KILLED", event.timeMs);
  }

  async close(): Promise<void> {
    this.#flush();
    await this.#queue.close(PATIENCE_MS);
  }

  #add(figures: readonly Figure[], timeMs: number): void {
    const step = this.#step;
    const isMade = (key: string) => step <= (this.#made.get(key) ?? Number.NEGATIVE_INFINITY);
    const metrics = figures.flatMap(([key, value]): Metric[] => {
      const sent = Number.isFinite(value) ? value : (`${value}` as Metric["value"]);
      return isMade(key) ? [] : [{ key, value: sent, timestamp: Math.round(timeMs), step }];
    });
    if (metrics.length === 0 || !this.#queue.admits(metrics.length, this.#metrics.length)) return;
    this.#journal.metrics(metrics);
    this.#metrics.push(...metrics);
    if (this.#metrics.length >= MOST_METRICS) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), FLUSH_MS).unref();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const run = this.#run;
    while (run !== undefined && this.#metrics.length > 0)
      this.#send(run, { metrics: this.#metrics.splice(0, MOST_METRICS) });
  }

  /** Asks for something once what came before is sent. */
  #ask(ask: Ask): void {
    this.#flush();
    if (!this.#queue.admits(1)) return;
    this.#journal.ask(ask);
    this.#send(this.#run as TrackedRun, { ask });
  }

  /**
   * @param run - the run that goes on now: its id is known once the requests before this one are answered
   * @param wasSent - whether another process sent it
   */
  #send(run: TrackedRun, entry: Entry, wasSent = false): void {
    const numEntries = sizeOf(entry);
    const send = async (isRepeat: boolean) => {
      if (!isRepeat) this.#journal.sent(numEntries);
      try {
        await this.#sendNow(run, entry, isRepeat || wasSent);
      } catch (error) {
        if (error instanceof RequestRefused) this.#journal.done(numEntries);
        throw error;
      }
      this.#journal.done(numEntries);
    };
    this.#queue.add({ numEntries, send });
  }

  async #sendNow(run: TrackedRun, entry: Entry, isRepeat: boolean): Promise<void> {
    const ask = "ask" in entry ? entry.ask : undefined;
    if (ask?.kind === "begin") {
      Object.assign(run, await (run.id === undefined ? this.#create(ask, isRepeat) : this.#resume(run.id)));
      this.#journal.belongsTo(run.id as string);
      return;
    }
    if (run.id === undefined) throw new RequestRefused("its run was not begun");
    if (ask?.kind === "post") await this.#client.post(ask.path, { run_id: run.id, ...ask.fields });
    else if (ask !== undefined) await this.#upload(run, ask);
    else await this.#log(run.id, (entry as { readonly metrics: readonly Metric[] }).metrics, isRepeat);
  }

  async #log(run: string, metrics: readonly Metric[], isRepeat: boolean): Promise<void> {
    // The answer may be what was lost.
    if (isRepeat && (await this.#hasLogged(run, metrics.at(-1) as Metric))) return;
    await this.#client.post("runs/log-batch", { run_id: run, metrics });
  }

  async #hasLogged(run: string, { key, step, timestamp }: Metric): Promise<boolean> {
    let page = "";
    do {
      const answer = await this.#client
        .get("metrics/get-history", {
          run_id: run,
          metric_key: key,
          max_results: `${MOST_HISTORY}`,
          ...(page !== "" && { page_token: page }),
        })
        .catch((error) => {
          if (error instanceof RequestRefused) return {}; // no such metric yet
          throw error;
        });
      const { metrics = [], next_page_token: next = "" } = answer as History;
      if (metrics.some((each) => Number(each.step ?? 0) === step && Number(each.timestamp) === timestamp))
        return true;
      page = next;
    } while (page !== "");
    return false;
  }

  #begin(event: EventOf<"run.started">): void {
    this.#flush();
    const { job, firstStep, timeMs } = event;
    const { waiting, wasSent, run: noted } = this.#journal;
    const mayResume = firstStep > 0 && (noted !== undefined || waiting.length > 0);
    const given = this.#environment.MLFLOW_RUN_ID;
    let former: TrackedRun = { id: noted ?? given };
    for (const [index, entry] of waiting.entries()) {
      // Another run was begun in the folder, before all of the former one was sent.
      if ("ask" in entry && entry.ask.kind === "begin" && entry.ask.isNew) former = {};
      this.#send(former, entry, wasSent && index === 0);
    }
    this.#run = given !== undefined ? { id: given } : mayResume ? former : {};
    this.#made = mayResume ? new Map(this.#journal.steps) : new Map();
    this.#journal.begin(!mayResume);
    this.#step = firstStep;
    this.#hasEnded = false;
    this.#ask({ kind: "begin", isNew: given === undefined && !mayResume, key: randomUUID(), job, timeMs });
    if (given !== undefined || mayResume) return;
    const params = Object.entries(settingsOf(event)).map(([key, value]) => ({
      key,
      value: `${value}`.slice(0, MOST_VALUE),
    }));
    for (let first = 0; first < params.length; first += MOST_PARAMS)
      this.#post("runs/log-batch", { params: params.slice(first, first + MOST_PARAMS) });
  }

  /** @param begin - its key is a tag of this run alone, to find it by if the answer was lost */
  async #create(
    { job, timeMs, key }: Ask & { readonly kind: "begin" },
    isRepeat: boolean,
  ): Promise<Required<TrackedRun>> {
    const experiment = await this.#experiment(this.#environment.MLFLOW_EXPERIMENT_NAME ?? "Default");
    if (isRepeat) {
      const filter = `tags."troupe.run" = '${key}'`;
      const found = await this.#client.post("runs/search", { experiment_ids: [experiment], filter });
      const [run] = (found as { readonly runs?: readonly unknown[] }).runs ?? [];
      if (run !== undefined) return partsOf({ run });
    }
    const name = this.#environment.MLFLOW_RUN_NAME ?? basename(this.#options.folder ?? job);
    const created = await this.#client.post("runs/create", {
      experiment_id: experiment,
      start_time: Math.round(timeMs),
      run_name: name,
      tags: [
        { key: "mlflow.source.name", value: job },
        { key: "mlflow.source.type", value: "JOB" },
        { key: "troupe.run", value: key },
      ],
    });
    return partsOf(created);
  }

  async #experiment(name: string): Promise<string> {
    try {
      const found = await this.#client.get("experiments/get-by-name", { experiment_name: name });
      return (found as { experiment: { experiment_id: string } }).experiment.experiment_id;
    } catch (error) {
      if (!(error instanceof RequestRefused)) throw error;
      const made = await this.#client.post("experiments/create", { name });
      return (made as { experiment_id: string }).experiment_id;
    }
  }

  async #resume(id: string): Promise<Required<TrackedRun>> {
    await this.#client.post("runs/update", { run_id: id, status: "RUNNING" });
    return partsOf(await this.#client.get("runs/get", { run_id: id }));
  }

  #saved({ path }: EventOf<"checkpoint.saved">): void {
    this.#post("runs/set-tag", { key: "troupe.checkpoint", value: path });
    const { checkpoints, folder } = this.#options;
    if (checkpoints !== true || path.includes("://")) return;
    // A run without a folder is not resumed: nothing else names the place.
    this.#checkpoints ??= folder ?? dirname(path);
    if (resolve(dirname(path)) !== resolve(this.#checkpoints)) return;
    for (const file of readdirSync(path)) this.#ask({ kind: "file", checkpoint: basename(path), file });
  }

  async #upload(run: TrackedRun, { checkpoint, file }: Ask & { readonly kind: "file" }): Promise<void> {
    const { id = "" } = run;
    // A run that another process began says its place when it is asked.
    run.artifacts ??= partsOf(await this.#client.get("runs/get", { run_id: id })).artifacts;
    const { artifacts } = run;
    const root = /^mlflow-artifacts:\/*(.*)$/.exec(artifacts)?.[1];
    if (root === undefined)
      throw new RequestRefused(`it keeps artifacts at ${artifacts}, where it passes on no files`);
    const path = join(this.#checkpoints ?? this.#options.folder ?? "", checkpoint);
    const place = `${root}/checkpoints/${checkpoint}/${file}`;
    await this.#client.upload(place, join(path, file)).catch((error: NodeJS.ErrnoException) => {
      // It was pruned while it waited.
      throw error.code === "ENOENT" ? new RequestRefused(`${path} is gone`) : error;
    });
  }

  #end(status: "FINISHED" | "FAILED" | "KILLED", timeMs: number): void {
    this.#flush();
    if (this.#hasEnded) return; // an interrupted run fails, too
    this.#hasEnded = true;
    this.#post("runs/update", { status, end_time: Math.round(timeMs) });
  }

  #post(path: (Ask & { readonly kind: "post" })["path"], fields: object): void {
    this.#ask({ kind: "post", path, fields: { ...fields } });
  }
}

/** Replaces what MLflow refuses in a name: it would refuse all figures of the request. */
function nameOf(curve: string): string {
  return curve.replace(/[^/\p{L}\p{N}_.\- ]/gu, "_");
}

function partsOf(answer: unknown): Required<TrackedRun> {
  const { info } = (answer as { run: { info: { run_id: string; artifact_uri: string } } }).run;
  return { id: info.run_id, artifacts: info.artifact_uri };
}
