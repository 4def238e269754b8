import type { LiveModel } from "../../../actors/trainer/index.ts";
import { type LocalCall, LocalServer, type ServeOptions } from "./local-server.ts";
import { type EventSource, modelRoutes } from "./model-routes.ts";
import { methodsOf, route } from "./routing.ts";

/** Time for the answers of calls that have ended, such as by the error that ends the model. */
const GRACE_MS = 1_000;

/** Lets other programs call a live model over HTTP/1.1. Owns neither the model nor its runtime. */
export class ModelServer implements AsyncDisposable {
  readonly #server: LocalServer;

  private constructor(server: LocalServer) {
    this.#server = server;
  }

  /**
   * Listens on a Unix socket or on the loopback address.
   * @param model - its calls are made in the order in which requests have arrived
   * @param runtime - of the model, whose events callers may read
   * @throws {TroupeError} `USAGE` unless exactly one of the two is given; `MODEL_SERVE` if it is taken or forbidden;
   * `ACCESS_TOKEN` for a token file that others can read
   */
  static async listen(model: LiveModel, runtime: EventSource, options: ServeOptions): Promise<ModelServer> {
    const served = {
      where: "serve",
      code: "MODEL_SERVE",
      methods: methodsOf(modelRoutes),
      route: (call: LocalCall) =>
        route(modelRoutes, { ...call, model, runtime }, "docs/guide/serve-a-model.md"),
    } as const;
    return new ModelServer(await LocalServer.listen(served, options));
  }

  /** `http://127.0.0.1:PORT`, or `unix:PATH`. */
  get address(): string {
    return this.#server.address;
  }

  /** Closes all connections once calls that have ended are answered; those that the model has begun are still made. */
  async close(): Promise<void> {
    await this.#server.close(GRACE_MS);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
