import type { LiveModel } from "../../../actors/trainer/index.ts";
import { FrozenCopies } from "./frozen-copies.ts";
import { type LocalCall, LocalServer, type ServeOptions } from "./local-server.ts";
import { type EventSource, modelRoutes } from "./model-routes.ts";
import { methodsOf, route } from "./routing.ts";

/**
 * Lets other programs call a live model over HTTP/1.1. Owns neither the model nor its runtime, but the frozen copies that callers
 * make. Once it is closed, calls that have ended are still answered, and the model finishes those that it has begun.
 */
export class ModelServer extends LocalServer {
  /**
   * Listens on a Unix socket or on the loopback address.
   * @param model - its calls are made in the order in which requests have arrived
   * @param runtime - of the model, whose events callers may read
   * @throws {TroupeError} `USAGE` unless exactly one of the two is given; `MODEL_SERVE` if it is taken or forbidden;
   * `ACCESS_TOKEN` for a token file that others can read
   */
  static async listen(model: LiveModel, runtime: EventSource, options: ServeOptions): Promise<ModelServer> {
    const copies = new FrozenCopies();
    const served = {
      where: "serve",
      code: "MODEL_SERVE",
      methods: methodsOf(modelRoutes),
      route: (call: LocalCall) =>
        route(modelRoutes, { ...call, model, runtime, copies }, "docs/guide/serve-a-model.md"),
      // For the answers of calls that have ended, such as by the error that ends the model.
      graceMs: 1_000,
      onClosed: () => void copies.closeAll(),
    } as const;
    return ModelServer.open(served, options);
  }
}
