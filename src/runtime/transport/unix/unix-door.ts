import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { Callers } from "../../access/index.ts";
import type { Door } from "../hub/door.ts";

/** A door on a Unix socket, for processes of one machine. Every process that can access its folder may call. */
export class UnixDoor implements Door {
  readonly address: string;
  readonly heartbeat = undefined;
  readonly #server: Server = createServer();
  readonly #callers = new Callers(this.#server);

  /** @param folder - folder of the sockets of all processes; no other user may have access to it */
  constructor(folder: string, index: number) {
    this.address = socketPath(folder, index);
  }

  async open(onCall: (socket: Socket, admit: () => void) => void): Promise<void> {
    this.#server.on("connection", (socket) => onCall(socket, () => this.#callers.admit(socket)));
    this.#server.listen(this.address);
    await once(this.#server, "listening");
  }

  call(address: string): Socket {
    return connect(address);
  }

  distrustIn(): undefined {}

  close(): void {
    this.#server.close();
    this.#callers.close();
  }
}

/** Returns the path of a process's socket. */
export function socketPath(folder: string, index: number): string {
  return join(folder, `p${index}.sock`);
}
