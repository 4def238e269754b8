import { ownerOf, type RunStanding, standingOf } from "../../../library/checkpoint/index.ts";
import { describeBytes, table } from "../../planner/index.ts";
import { print } from "../flags.ts";
import { selectCheckpoints } from "./place.ts";

/** `troupe checkpoint list RUN` */
export async function listCheckpointsCommand(
  location: string,
  { json }: { readonly json: boolean },
): Promise<void> {
  const { storage, checkpoints } = await selectCheckpoints(location);
  const owner = await ownerOf(storage);
  const own = checkpoints.find(({ foreign, damage }) => !foreign && damage === undefined);
  const standing = await standingOf(storage, own?.savedAt);
  if (json) {
    const plain = checkpoints.map(({ damage, ...facts }) => ({
      ...facts,
      ...(damage && { damage: damage.message }),
    }));
    print(JSON.stringify({ location: storage.location, run: owner, standing, checkpoints: plain }));
    return;
  }
  if (owner !== undefined && standing !== undefined)
    print(`run of ${owner.job}, begun ${owner.startedAt}: ${describeStanding(standing)}`);
  const rows = checkpoints.map(({ name, step, sizeBytes, latest, named, run, foreign, damage }) => [
    name,
    String(step),
    damage === undefined ? describeBytes(sizeBytes) : "",
    run === undefined ? "" : `${run.job}, ${run.startedAt}`,
    damage !== undefined
      ? "damaged"
      : foreign
        ? "of another run"
        : [...(latest ? ["latest"] : []), ...named].join(", "),
  ]);
  const isText = (column: number) => column === 0 || column >= 3;
  print(table([["checkpoint", "step", "size", "run", ""], ...rows], isText));
}

function describeStanding(standing: RunStanding): string {
  switch (standing.state) {
    case "running":
      return `under way, in process ${standing.holder.pid} on ${standing.holder.host}`;
    case "ended":
      return `${standing.end.how} at ${standing.end.at}`;
    case "silent":
      return `ended without a record, last heard from at ${standing.heardAt}`;
    default:
      return standing satisfies never;
  }
}
