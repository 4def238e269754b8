import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

interface Metric {
  readonly key: string;
  readonly value: number | string;
  readonly step: number;
  readonly timestamp: number;
}

interface Tracked {
  readonly info: {
    run_id: string;
    experiment_id: string;
    run_name: string;
    status: string;
    artifact_uri: string;
  };
  readonly tags: Map<string, string>;
  readonly params: Map<string, string>;
  readonly metrics: Metric[];
}

/** A server may give fewer values than are asked for. */
const LONGEST_PAGE = 20;

/** An MLflow server, as its REST interface is documented. It keeps each metric as often as it comes. */
export class MlflowServer {
  readonly runs = new Map<string, Tracked>();
  readonly files = new Map<string, string>();
  readonly experiments = new Map<string, string>();
  readonly authorizations = new Set<string | undefined>();
  /** Answers that are to be lost after their request was done. */
  numLost = 0;
  /** Statuses of the next answers, whose requests are not done: those of a busy server. */
  busy: number[] = [];
  #server: Server | undefined;
  #port = 0;

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async open(): Promise<void> {
    const server = createServer((request, response) => void this.#answer(request, response));
    await new Promise<void>((resolve) => server.listen(this.#port, "127.0.0.1", resolve));
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    this.#server?.closeAllConnections();
    await new Promise((resolve) => this.#server?.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    const url = new URL(request.url ?? "", this.url);
    this.authorizations.add(request.headers.authorization);
    const [, place] = /^\/api\/2.0\/mlflow-artifacts\/artifacts\/(.*)$/.exec(url.pathname) ?? [];
    const status = this.busy.shift();
    if (status !== undefined) {
      response.writeHead(status).end();
      return;
    }
    let answer: object | undefined = {};
    if (place !== undefined) this.files.set(decodeURIComponent(place), body);
    else {
      const asked = request.method === "GET" ? Object.fromEntries(url.searchParams) : JSON.parse(body);
      answer = this.#done(url.pathname.replace("/api/2.0/mlflow/", ""), asked);
    }
    if (this.numLost > 0) {
      this.numLost--;
      response.destroy();
      return;
    }
    const refused = answer !== undefined && "error_code" in answer ? 400 : 200;
    response.writeHead(answer === undefined ? 404 : refused, { "content-type": "application/json" });
    response.end(JSON.stringify(answer ?? { error_code: "RESOURCE_DOES_NOT_EXIST" }));
  }

  // biome-ignore lint/suspicious/noExplicitAny: requests of any kind
  #done(path: string, asked: any): object | undefined {
    const run = this.runs.get(asked.run_id);
    switch (path) {
      case "experiments/get-by-name": {
        const id = this.experiments.get(asked.experiment_name);
        return id === undefined ? undefined : { experiment: { experiment_id: id } };
      }
      case "experiments/create":
        this.experiments.set(asked.name, `${this.experiments.size}`);
        return { experiment_id: this.experiments.get(asked.name) };
      case "runs/create": {
        const { experiment_id, run_name, tags } = asked;
        const run_id = `run-${this.runs.size}`;
        const artifact_uri = `mlflow-artifacts:/${experiment_id}/${run_id}/artifacts`;
        const made = {
          info: { run_id, experiment_id, run_name, status: "RUNNING", artifact_uri },
          tags: new Map<string, string>(tags.map(({ key, value }: Record<string, string>) => [key, value])),
          ...{ params: new Map<string, string>(), metrics: [] },
        };
        this.runs.set(run_id, made);
        return { run: made };
      }
      case "runs/search": {
        const [, key] = /^tags\."troupe.run" = '(.*)'$/.exec(asked.filter) ?? [];
        return { runs: [...this.runs.values()].filter(({ tags }) => tags.get("troupe.run") === key) };
      }
      case "runs/get":
        return run && { run };
      case "runs/update":
        if (run) run.info.status = asked.status;
        return run && { run_info: run.info };
      case "runs/set-tag":
        run?.tags.set(asked.key, asked.value);
        return run && {};
      case "runs/log-batch":
        if (isTooMuch(asked) || isMisnamed(asked)) return { error_code: "INVALID_PARAMETER_VALUE" };
        for (const { key, value } of asked.params ?? []) run?.params.set(key, value);
        run?.metrics.push(...(asked.metrics ?? []));
        return run && {};
      case "metrics/get-history": {
        const values = run?.metrics.filter(({ key }) => key === asked.metric_key) ?? [];
        const first = Number(asked.page_token ?? 0);
        // MLflow 3.11 gives no value, and a next page, where no number is asked for.
        const end = first + Math.min(asked.max_results ?? 0, LONGEST_PAGE);
        const metrics = values.slice(first, end);
        return { metrics, ...(end < values.length && { next_page_token: `${end}` }) };
      }
      default:
        return undefined;
    }
  }
}

/** Whether a name has other characters than those that MLflow allows. */
function isMisnamed({ metrics = [], params = [] }: Record<string, readonly { key: string }[]>): boolean {
  return [...metrics, ...params].some(({ key }) => !/^[/\p{L}\p{N}_.\- ]*$/u.test(key));
}

/** Whether a batch is larger than the REST interface allows: 1,000 metrics, 100 params, 100 tags, and 1,000 of all together. */
function isTooMuch({
  metrics = [],
  params = [],
  tags = [],
}: Record<string, readonly { value: unknown }[]>): boolean {
  const isLong = params.some(({ value }) => `${value}`.length > 6000);
  const numItems = metrics.length + params.length + tags.length;
  return isLong || numItems > 1000 || params.length > 100 || tags.length > 100;
}
