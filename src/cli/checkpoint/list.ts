import { describeBytes, table } from "../../planner/index.ts";
import { print } from "../flags.ts";
import { meantBy } from "./place.ts";

/** `troupe checkpoint list RUN` */
export async function listCheckpointsCommand(
  location: string,
  { json }: { readonly json: boolean },
): Promise<void> {
  const { storage, checkpoints } = await meantBy(location);
  if (json) {
    const plain = checkpoints.map(({ damage, ...facts }) => ({
      ...facts,
      ...(damage && { damage: damage.message }),
    }));
    print(JSON.stringify({ location: storage.location, checkpoints: plain }));
    return;
  }
  const rows = checkpoints.map(({ name, step, sizeBytes, latest, run, foreign, damage }) => [
    name,
    String(step),
    damage === undefined ? describeBytes(sizeBytes) : "",
    run === undefined ? "" : `${run.job}, ${run.startedAt}`,
    damage !== undefined ? "damaged" : foreign ? "of another run" : latest ? "latest" : "",
  ]);
  const isText = (column: number) => column === 0 || column >= 3;
  print(table([["checkpoint", "step", "size", "run", ""], ...rows], isText));
}
