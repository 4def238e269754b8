import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { TroupeError } from "../../errors/index.ts";
import { maxFileBytes, readBoundedTextSync } from "../../errors/untrusted/index.ts";
import { type Environment, homeFolder, type Repository } from "./cache.ts";

/** What is said of a hub's file before it is read. */
export interface FileFacts {
  /** The name of its content: SHA-256 of large files, Git's SHA-1 of others. */
  readonly etag: string;
  /** Undefined where the hub does not say. */
  readonly sizeBytes: number | undefined;
  /** Where its bytes are: of large files elsewhere than at the hub. */
  readonly url: string;
}

/** What is at a revision of a repository. */
export interface RepositoryFacts {
  readonly commit: string;
  readonly files: readonly string[];
}

/** Words for a repository in messages. */
const wordOf = { models: "model", datasets: "dataset" } as const;

const MOST_REDIRECTS = 5;
/** A hub that is overloaded, or between two of its versions, is asked again. */
const TRANSIENT: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);
const ATTEMPTS = 4;

/** A hub that speaks as huggingface.co does. Nothing is asked before a method is called. */
export class HubEndpoint {
  readonly address: string;
  readonly #token: string | undefined;
  readonly #silenceMs: number;
  readonly #firstDelayMs: number;

  /** @param firstDelayMs - before a failed request is repeated; doubled with each */
  constructor(environment: Environment, firstDelayMs = 500) {
    const { HF_ENDPOINT = "https://huggingface.co", HF_HUB_ETAG_TIMEOUT = "10" } = environment;
    this.address = HF_ENDPOINT.replace(/\/+$/, "");
    this.#token = tokenIn(environment);
    this.#silenceMs = 1000 * Number(HF_HUB_ETAG_TIMEOUT);
    this.#firstDelayMs = firstDelayMs;
  }

  /**
   * @throws {TroupeError} `HUB_UNREACHABLE`; `HUB` for a repository that is not there, or not for this user, naming what is near
   */
  async facts(repository: Repository): Promise<RepositoryFacts> {
    const { kind, name, revision } = repository;
    const url = `${this.address}/api/${kind}/${name}/revision/${encodeURIComponent(revision)}`;
    const response = await this.ask(url);
    if (!response.ok) throw await this.#refused(repository, response);
    const { sha, siblings } = (await response.json().catch(() => ({}))) as {
      readonly sha?: unknown;
      readonly siblings?: readonly { readonly rfilename?: unknown }[];
    };
    if (typeof sha !== "string" || !/^\w+$/.test(sha) || !Array.isArray(siblings))
      throw unreachable(
        this.address,
        `an answer to ${url} that no hub gives`,
        "does HF_ENDPOINT lead to one?",
      );
    const files = siblings.map(({ rfilename }) => String(rfilename)).filter(isInside);
    return { commit: sha, files };
  }

  /** @throws {TroupeError} `HUB_UNREACHABLE`, `HUB` */
  async fileFacts(repository: Repository, commit: string, file: string): Promise<FileFacts> {
    const { kind, name } = repository;
    const of = kind === "models" ? "" : `${kind}/`;
    const path = file.split("/").map(encodeURIComponent).join("/");
    const response = await this.ask(`${this.address}/${of}${name}/resolve/${commit}/${path}`, {
      method: "HEAD",
    });
    const { headers, status } = response;
    if (status >= 400) throw await this.#refused(repository, response, file);
    const etag = (headers.get("x-linked-etag") ?? headers.get("etag") ?? "")
      .replace(/^W\//, "")
      .replaceAll('"', "");
    if (!/^[\w.-]+$/.test(etag))
      throw unreachable(this.address, `no ETag of ${file}`, "does HF_ENDPOINT lead to a hub?");
    const size = headers.get("x-linked-size") ?? (status < 300 ? headers.get("content-length") : null);
    const location = headers.get("location");
    return {
      etag,
      sizeBytes: size === null ? undefined : Number(size),
      url: location === null ? response.url : new URL(location, response.url).href,
    };
  }

  /** @returns names at the hub that a search for a name finds; none where it cannot be asked */
  async namesNear({ kind, name }: Repository): Promise<string[]> {
    const word = encodeURIComponent(name.split("/").at(-1) ?? name);
    const response = await this.ask(`${this.address}/api/${kind}?search=${word}&limit=20`).catch(
      () => undefined,
    );
    const found = (response?.ok ? await response.json().catch(() => []) : []) as readonly {
      readonly id?: unknown;
    }[];
    return Array.isArray(found) ? found.map(({ id }) => String(id)) : [];
  }

  /**
   * Asks, and asks again where that may help; follows redirects. Of a HEAD, one that leads away from the hub is the answer.
   * The token goes to the hub alone, wherever it redirects to.
   * @throws {TroupeError} `HUB_UNREACHABLE`
   */
  async ask(url: string, request: RequestInit = {}): Promise<Response> {
    for (let attempt = 1; ; attempt++) {
      try {
        const response = await this.#follow(url, request);
        if (!TRANSIENT.has(response.status) || attempt === ATTEMPTS) return response;
        await response.body?.cancel();
      } catch (cause) {
        // Nobody listens there, or nobody knows where that is: to ask again is in vain.
        if (attempt === ATTEMPTS || isHopeless(cause))
          throw unreachable(this.address, reasonOf(cause), undefined, cause);
      }
      await sleep(this.#firstDelayMs * 2 ** (attempt - 1));
    }
  }

  async #follow(first: string, { headers: own, ...request }: RequestInit): Promise<Response> {
    let url = first;
    for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
      const headers = new Headers(own);
      // Sizes and ranges are those of the file itself.
      headers.set("accept-encoding", "identity");
      headers.set("user-agent", "troupe");
      if (this.#token !== undefined && this.isOwn(url)) headers.set("authorization", `Bearer ${this.#token}`);
      const signal = request.signal ?? AbortSignal.timeout(this.#silenceMs);
      const response = await fetch(url, { ...request, headers, redirect: "manual", signal });
      const location = response.headers.get("location");
      if (response.status < 300 || response.status >= 400 || location === null) return response;
      const next = new URL(location, url).href;
      const isLarge = response.headers.has("x-linked-etag");
      if (request.method === "HEAD" && (isLarge || !this.isOwn(next))) return response;
      await response.body?.cancel();
      url = next;
    }
    throw new Error(`more than ${MOST_REDIRECTS} redirects`);
  }

  /** Whether an address is the hub's own. */
  isOwn(url: string): boolean {
    return new URL(url).host === new URL(this.address).host;
  }

  async #refused(repository: Repository, response: Response, file?: string): Promise<TroupeError> {
    const { kind, name, revision } = repository;
    const { status, headers } = response;
    await response.body?.cancel();
    const code = headers.get("x-error-code") ?? "";
    const [what, has] = [wordOf[kind], this.#token !== undefined];
    const page = `${this.address}/${kind === "models" ? "" : `${kind}/`}${name}`;
    const got = `${status}${code === "" ? "" : `, ${code}`}`;
    if (code === "GatedRepo" || (status === 403 && code === ""))
      return this.#no(
        `a token that may read the ${what} ${name}, which is gated`,
        `${got} with ${has ? "the one given" : "none"}`,
        `accept its terms at ${page}, and set HF_TOKEN`,
      );
    if (code === "RevisionNotFound" || code === "EntryNotFound")
      return this.#no(
        code === "EntryNotFound"
          ? `${file} in the ${what} ${name}`
          : `a revision ${revision} of the ${what} ${name}`,
        got,
        `what there is stands at ${page}`,
      );
    // To who may not know of it, a repository is as one that is not there.
    if (status === 401 || status === 403 || status === 404) {
      const near = await this.namesNear(repository);
      const named = near.filter((each) => each !== name).slice(0, 3);
      return this.#no(
        `a ${what} ${name} that ${has ? "the token given" : "everybody"} may read`,
        got,
        named.length > 0
          ? `did you mean ${named.join(", ")}?`
          : has
            ? "another name, or another HF_TOKEN"
            : "set HF_TOKEN where it is private",
      );
    }
    return unreachable(this.address, `status ${got} of ${name}`);
  }

  #no(expected: string, got: string, hint: string): TroupeError {
    const where = new URL(this.address).host;
    return new TroupeError("HUB", { where: "hub", expected: `${expected} at ${where}`, got, hint });
  }
}

/** A hub that does not answer, or not as one. */
export function unreachable(address: string, got: string, hint?: string, cause?: unknown): TroupeError {
  return new TroupeError(
    "HUB_UNREACHABLE",
    {
      where: "hub",
      expected: `an answer of ${address}`,
      got,
      hint: hint ?? "HF_HUB_OFFLINE=1 looks at what is here alone, HF_ENDPOINT names another hub",
    },
    cause === undefined ? {} : { cause },
  );
}

/** @returns one line of what went wrong with a request */
export function reasonOf(error: unknown): string {
  const cause = (error as { readonly cause?: unknown }).cause ?? error;
  const { code, name, message } = cause as { code?: unknown; name?: string; message?: string };
  if (name === "TimeoutError" || name === "AbortError") return "silence";
  return typeof code === "string" ? code : ((message ?? String(cause)).split("\n")[0] ?? "");
}

function isHopeless(error: unknown): boolean {
  return ["ECONNREFUSED", "ENOTFOUND", "ENETUNREACH", "EHOSTUNREACH"].includes(reasonOf(error));
}

/** Of the environment, else of where Hugging Face's own command left it. */
function tokenIn(environment: Environment): string | undefined {
  const { HF_TOKEN, HUGGING_FACE_HUB_TOKEN, HF_TOKEN_PATH } = environment;
  const said = HF_TOKEN ?? HUGGING_FACE_HUB_TOKEN;
  if (said !== undefined) return said.trim() || undefined;
  try {
    return (
      readBoundedTextSync(
        HF_TOKEN_PATH ?? join(homeFolder(environment), "token"),
        maxFileBytes.word,
      ).trim() || undefined
    );
  } catch {
    return undefined;
  }
}

/** Whether a file's name leads nowhere else: it comes from a server. */
function isInside(file: string): boolean {
  return file !== "" && !file.startsWith("/") && !file.includes("\\") && !file.split("/").includes("..");
}
