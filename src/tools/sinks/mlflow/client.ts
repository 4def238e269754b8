import { openAsBlob } from "node:fs";
import { TroupeError } from "../../../errors/index.ts";
import { RequestRefused } from "../request-queue.ts";

/** The environment variables that are read. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** How long a server may take to answer, and to receive a file. */
const [ANSWER_MS, FILE_MS] = [10_000, 600_000];

/** Calls an MLflow server by its REST interface. Credentials are read of the environment, and stand in no message. */
export class MlflowClient {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;

  /**
   * @param url - of the server, without credentials
   * @throws {TroupeError} `SINK` for another address
   */
  constructor(url: string, environment: Environment) {
    const parsed = URL.canParse(url) ? new URL(url) : undefined;
    if (
      parsed === undefined ||
      !/^https?:$/.test(parsed.protocol) ||
      parsed.username + parsed.password !== ""
    )
      throw new TroupeError("SINK", {
        where: "mlflow",
        expected: "the http:// or https:// address of a server, without a password",
        got: parsed?.username ? "one with a name or password" : JSON.stringify(url),
        hint: "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN, are where they are read",
      });
    this.#url = url.replace(/\/+$/, "");
    const { MLFLOW_TRACKING_TOKEN: token, MLFLOW_TRACKING_USERNAME: user = "" } = environment;
    const password = environment.MLFLOW_TRACKING_PASSWORD;
    const basic = password === undefined ? undefined : Buffer.from(`${user}:${password}`).toString("base64");
    this.#headers = {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(token === undefined && basic !== undefined && { authorization: `Basic ${basic}` }),
    };
  }

  /** Asks the server to do something. @param path - such as `runs/create` */
  post(path: string, body: object): Promise<unknown> {
    const headers = { ...this.#headers, "content-type": "application/json" };
    return this.#call(`/api/2.0/mlflow/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  }

  get(path: string, query: Readonly<Record<string, string>>): Promise<unknown> {
    return this.#call(`/api/2.0/mlflow/${path}?${new URLSearchParams(query)}`, { headers: this.#headers });
  }

  /** Sends a file to the server's store of artifacts. @param place - below the store's root */
  async upload(place: string, file: string): Promise<void> {
    const body = await openAsBlob(file);
    const path = place.split("/").map(encodeURIComponent).join("/");
    const request = { method: "PUT", headers: this.#headers, body };
    await this.#call(`/api/2.0/mlflow-artifacts/artifacts/${path}`, request, FILE_MS);
  }

  async #call(path: string, request: RequestInit, patienceMs = ANSWER_MS): Promise<unknown> {
    const answer = await fetch(this.#url + path, {
      ...request,
      signal: AbortSignal.timeout(patienceMs),
    }).catch((cause: Error) => {
      if (cause.name === "TimeoutError") throw new Error(`it gave no answer within ${patienceMs / 1000} s`);
      throw new Error(`it cannot be reached: ${causeOf(cause)}`);
    });
    const text = await answer.text();
    if (answer.ok) return text === "" ? {} : JSON.parse(text);
    const said = `it answered ${answer.status} to ${path.replace(/\?.*/, "")}: ${text.slice(0, 300)}`;
    const mayPass = answer.status >= 500 || answer.status === 408 || answer.status === 429;
    throw mayPass ? new Error(said) : new RequestRefused(said);
  }
}

function causeOf(error: Error): string {
  const { code, message } = (error.cause ?? error) as NodeJS.ErrnoException;
  return code ?? message;
}
