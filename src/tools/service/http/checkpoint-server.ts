import type { CheckpointService } from "../checkpoint-service.ts";
import { type LocalCall, LocalServer, type ServeOptions } from "./local-server.ts";
import { OpenSaves } from "./open-saves.ts";
import { routes } from "./routes.ts";
import { methodsOf, route } from "./routing.ts";

/**
 * Lets other programs save tensors with a {@link CheckpointService} over HTTP/1.1. Owns neither the service nor its storage; its
 * end drops saves that were not committed.
 */
export class CheckpointServer extends LocalServer {
  /**
   * Listens on a Unix socket or on the loopback address.
   * @param options - `idleMs` is also the time without a request after which an open save is dropped
   * @throws {TroupeError} `USAGE` unless exactly one of the two is given; `CHECKPOINT_SERVE` if it is taken or forbidden;
   * `ACCESS_TOKEN` for a token file that others can read
   */
  static async listen(service: CheckpointService, options: ServeOptions): Promise<CheckpointServer> {
    const saves = new OpenSaves(service, options.idleMs ?? 300_000);
    const served = {
      where: "checkpoint serve",
      code: "CHECKPOINT_SERVE",
      methods: methodsOf(routes),
      route: (call: LocalCall) =>
        route(routes, { ...call, service, saves }, "docs/guide/serve-checkpoints.md"),
      onClosed: () => saves.close(),
    } as const;
    try {
      return await CheckpointServer.open(served, options);
    } catch (error) {
      saves.close();
      throw error;
    }
  }
}
