import { randomUUID } from "node:crypto";
import { readdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { maxFileBytes, parseBoundedJson, readBoundedTextSync } from "../../../errors/untrusted/index.ts";
import type { EventOf, EventSink, TellTrouble, TroupeEvent } from "../../../job/events/index.ts";
import { pointsOf } from "../curves.ts";
import { RequestQueue, RequestRefused } from "../request-queue.ts";
import { settingsOf } from "../settings.ts";
import { SystemMeter } from "../system-figures.ts";
import { type Environment, type Metric, MlflowClient } from "./client.ts";

/** Options of an MLflow sink. */
export interface MlflowOptions {
  /** Address of the server. */
  readonly url: string;
  /** The run's folder: a file in it says which MLflow run goes on when the run is resumed. */
  readonly folder?: string | undefined;
  /** Whether the files of each checkpoint are sent as artifacts. Default: false; a tag says where it is. */
  readonly checkpoints?: boolean;
  /** Default: the process's. */
  readonly environment?: Environment;
}

/** Points of a request: MLflow takes 1,000 metrics and 100 parameters. */
const [MOST_METRICS, MOST_PARAMS] = [1000, 100];
const MOST_VALUE = 500;
const FLUSH_MS = 1_000;
const SYSTEM_MS = 10_000;
/** How long the end of a run waits for a server. */
const PATIENCE_MS = 60_000;
/** Name of the file that says which MLflow run a run's folder belongs to. */
const FILE = "mlflow.json";

/**
 * Tracks runs on an MLflow server: settings as parameters, figures as metrics, the machine's as `system/…`, checkpoints as artifacts. Each
 * run is an MLflow run; one that is resumed goes on in its own. Requests are sent beside the run, each until it is answered: a server that is
 * down for a while gets every figure once. `MLFLOW_EXPERIMENT_NAME`, `MLFLOW_RUN_ID` and the credentials are read of the environment.
 * @throws {TroupeError} `SINK` if the address is none, or holds a password
 */
export function mlflowSink(options: MlflowOptions): EventSink {
  return new MlflowSink(options);
}

/** An MLflow run: its id, and the address of its artifacts, once they are known. */
interface TrackedRun {
  id?: string;
  artifacts?: string;
}

class MlflowSink implements EventSink {
  readonly closeDeadlineMs = PATIENCE_MS + FLUSH_MS;
  readonly #options: MlflowOptions;
  readonly #environment: Environment;
  readonly #client: MlflowClient;
  readonly #queue: RequestQueue;
  readonly #meter = new SystemMeter();
  /** The run that goes on; its first request fills it in. */
  #run: TrackedRun | undefined;
  #metrics: Metric[] = [];
  #step = 0;
  #hasEnded = false;
  #timer: NodeJS.Timeout | undefined;
  #measuredMs = 0;

  constructor(options: MlflowOptions) {
    const { url, environment = process.env } = options;
    this.#options = options;
    this.#environment = environment;
    this.#client = new MlflowClient(url, environment);
    this.#queue = new RequestQueue(`the MLflow server at ${url}`);
  }

  attach(tell: TellTrouble): void {
    this.#queue.onTrouble(tell);
  }

  write(event: TroupeEvent): void {
    if (event.kind === "run.started") this.#begin(event);
    if (this.#run === undefined) return; // it failed before it began
    if ("step" in event && event.kind !== "activity.finished") this.#step = event.step;
    for (const { group, name, rank, value } of pointsOf(event))
      this.#add(
        rank === undefined ? `${group}/${name}` : `${group}/rank_${rank}/${name}`,
        value,
        event.timeMs,
      );
    if (event.kind === "step.finished") this.#measure(event.timeMs);
    if (event.kind === "checkpoint.saved") this.#saved(event);
    if (event.kind === "run.finished") this.#end("FINISHED", event.timeMs);
    if (event.kind === "run.failed") this.#end("FAILED", event.timeMs);
    if (event.kind === "run.interrupted") this.#end("KILLED", event.timeMs);
  }

  async close(): Promise<void> {
    this.#flush();
    await this.#queue.close(PATIENCE_MS);
  }

  #add(key: string, value: number, timeMs: number): void {
    const told = Number.isFinite(value) ? value : (`${value}` as Metric["value"]);
    this.#metrics.push({ key, value: told, timestamp: Math.round(timeMs), step: this.#step });
    if (this.#metrics.length >= MOST_METRICS) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), FLUSH_MS).unref();
  }

  #measure(timeMs: number): void {
    if (timeMs - this.#measuredMs < SYSTEM_MS) return;
    this.#measuredMs = timeMs;
    for (const [name, value] of Object.entries(this.#meter.read()))
      this.#add(`system/${name}`, value, timeMs);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const run = this.#run;
    while (run !== undefined && this.#metrics.length > 0)
      this.#log(run, this.#metrics.splice(0, MOST_METRICS));
  }

  /** @param run - the run that goes on now: its id is known once the request is sent */
  #log(run: { readonly id?: string }, metrics: readonly Metric[]): void {
    this.#queue.add({
      numEntries: metrics.length,
      send: async (isRepeat) => {
        if (run.id === undefined) throw new RequestRefused("its run was not begun");
        // The answer may be what was lost.
        if (isRepeat && (await this.#hasLogged(run.id, metrics.at(-1) as Metric))) return;
        await this.#client.post("runs/log-batch", { run_id: run.id, metrics });
      },
    });
  }

  async #hasLogged(run: string, { key, step, timestamp }: Metric): Promise<boolean> {
    const answer = await this.#client
      .get("metrics/get-history", { run_id: run, metric_key: key })
      .catch((error) => {
        if (error instanceof RequestRefused) return {}; // no such metric yet
        throw error;
      });
    const { metrics = [] } = answer as { readonly metrics?: readonly Metric[] };
    return metrics.some((each) => Number(each.step ?? 0) === step && Number(each.timestamp) === timestamp);
  }

  #begin(event: EventOf<"run.started">): void {
    this.#flush();
    const run: TrackedRun = {};
    const key = randomUUID();
    this.#run = run;
    this.#step = event.firstStep;
    this.#hasEnded = false;
    const known = this.#environment.MLFLOW_RUN_ID ?? (event.firstStep > 0 ? this.#noted() : undefined);
    this.#queue.add({
      numEntries: 1,
      send: async (isRepeat) => {
        const begun = known === undefined ? this.#create(event, key, isRepeat) : this.#resume(known);
        const { id, artifacts } = await begun;
        Object.assign(run, { id, artifacts });
        this.#note(id);
      },
    });
    if (known !== undefined) return;
    const params = Object.entries(settingsOf(event)).map(([key, value]) => ({
      key,
      value: `${value}`.slice(0, MOST_VALUE),
    }));
    for (let first = 0; first < params.length; first += MOST_PARAMS) {
      const part = params.slice(first, first + MOST_PARAMS);
      this.#post("runs/log-batch", { params: part }, part.length);
    }
  }

  /** @param key - a tag of this run alone, to find it by if the answer was lost */
  async #create(
    { job, timeMs }: EventOf<"run.started">,
    key: string,
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

  #saved({ step, path }: EventOf<"checkpoint.saved">): void {
    const run = this.#run as TrackedRun;
    this.#post("runs/set-tag", { key: "troupe.checkpoint", value: path });
    if (this.#options.checkpoints !== true || path.includes("://")) return;
    const files = readdirSync(path);
    for (const file of files)
      this.#queue.add({
        numEntries: 1,
        send: async () => {
          const root = /^mlflow-artifacts:\/*(.*)$/.exec(run.artifacts ?? "")?.[1];
          if (root === undefined)
            throw new RequestRefused(`it keeps artifacts at ${run.artifacts}, where it passes on no files`);
          const place = `${root}/checkpoints/step-${String(step).padStart(6, "0")}/${file}`;
          await this.#client.upload(place, join(path, file)).catch((error: NodeJS.ErrnoException) => {
            // It was pruned while it waited.
            throw error.code === "ENOENT" ? new RequestRefused(`${path} is gone`) : error;
          });
        },
      });
  }

  #end(status: "FINISHED" | "FAILED" | "KILLED", timeMs: number): void {
    this.#flush();
    if (this.#hasEnded) return; // an interrupted run fails, too
    this.#hasEnded = true;
    this.#post("runs/update", { status, end_time: Math.round(timeMs) });
  }

  /** The run has its id once the requests before this one are answered. */
  #post(path: string, fields: object, numEntries = 1): void {
    const run = this.#run as TrackedRun;
    const send = async () => {
      await this.#client.post(path, { run_id: run.id, ...fields });
    };
    this.#queue.add({ numEntries, send });
  }

  /** The MLflow run of the folder, if it is on this server. */
  #noted(): string | undefined {
    if (this.#options.folder === undefined) return undefined;
    try {
      const text = readBoundedTextSync(join(this.#options.folder, FILE), maxFileBytes.word);
      const { url, run } = parseBoundedJson(text) as Partial<Record<"url" | "run", unknown>>;
      return url === this.#options.url && typeof run === "string" ? run : undefined;
    } catch {
      return undefined; // it was not tracked
    }
  }

  #note(run: string): void {
    const { folder, url } = this.#options;
    if (folder === undefined) return;
    try {
      writeFileSync(join(folder, FILE), `${JSON.stringify({ url, run })}\n`);
    } catch {
      // The folder is gone: a run that is resumed elsewhere begins another.
    }
  }
}

function partsOf(answer: unknown): Required<TrackedRun> {
  const { info } = (answer as { run: { info: { run_id: string; artifact_uri: string } } }).run;
  return { id: info.run_id, artifacts: info.artifact_uri };
}
