import { join } from "node:path";
import { joinFolders } from "../../../library/checkpoint/index.ts";
import { print } from "../flags.ts";
import { selectCheckpoints } from "./place.ts";

/**
 * `troupe checkpoint join CHECKPOINT FOLDER...`.
 * @throws {TroupeError} `CHECKPOINT_ELSEWHERE` where none of the folders has a file; `CHECKPOINT_DAMAGED` for other bytes
 */
export async function joinCheckpoint(
  location: string,
  folders: readonly string[],
  { json }: { readonly json: boolean },
): Promise<void> {
  const { storage, checkpoints } = await selectCheckpoints(location);
  const name = checkpoints[0]?.name as string;
  const path = join(storage.location, name);
  const brought = await joinFolders(path, folders);
  if (json) print(JSON.stringify({ path, brought }));
  else print(`${path}  ${brought.length === 0 ? "is complete already" : `has ${brought.join(", ")} now`}`);
}
