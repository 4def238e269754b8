import type { Door } from "../transport/hub/door.ts";
import { type Network, TcpDoor } from "../transport/tcp/tcp-door.ts";
import { UnixDoor } from "../transport/unix/unix-door.ts";

/** Makes the door of a process: on the network if one is given, otherwise a Unix socket in the folder. */
export function doorOf({
  network,
  folder,
  index,
}: {
  readonly network: Network | undefined;
  readonly folder: string;
  readonly index: number;
}): Door {
  return network === undefined ? new UnixDoor(folder, index) : new TcpDoor(network);
}
