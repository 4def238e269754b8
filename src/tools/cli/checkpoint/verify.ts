import { TroupeError } from "../../../errors/index.ts";
import { type Damage, verifyCheckpoint } from "../../../library/checkpoint/index.ts";
import { print } from "../flags.ts";
import { selectCheckpoints } from "./place.ts";

interface VerifyFlags {
  readonly step?: number;
  readonly json: boolean;
}

/** `troupe checkpoint verify RUN`. @throws {TroupeError} `CHECKPOINT_DAMAGED` after checking all, if one is damaged */
export async function verifyCheckpoints(location: string, { step, json }: VerifyFlags): Promise<void> {
  const { storage, checkpoints } = await selectCheckpoints(location, step);
  const results: { name: string; damages: readonly Damage[] }[] = [];
  for (const { name } of checkpoints) {
    const damages = await verifyCheckpoint(storage, name);
    results.push({ name, damages });
    if (json) continue;
    const places = `${damages.length} place${damages.length === 1 ? "" : "s"}`;
    print(damages.length === 0 ? `${name}  intact` : `${name}  damaged in ${places}`);
    for (const damage of damages) print(`  ${described(damage)}`);
  }
  const damaged = results.filter(({ damages }) => damages.length > 0);
  if (json) print(JSON.stringify({ location: storage.location, checkpoints: results }));
  if (damaged.length === 0) return;
  throw new TroupeError("CHECKPOINT_DAMAGED", {
    where: "troupe checkpoint",
    expected: `intact checkpoints in ${storage.location}`,
    got: `${damaged.map(({ name }) => name).join(", ")} damaged`,
    hint: "restore from a copy, or resume: it uses the newest intact one",
    fields: { path: storage.location },
  });
}

function described({ path, tensor, offsetBytes, message }: Damage): string {
  if (offsetBytes === undefined) return message;
  return `${path}, from byte ${offsetBytes}${tensor === undefined ? "" : `: tensor ${tensor}`}`;
}
