import { TroupeError } from "../errors/index.ts";

/** Returns the error of a wait that a new generation of ranks has ended: `ACTOR_DOWN`. @param where - who waited */
export function generationEnded(where: string, generation: number): TroupeError {
  return new TroupeError("ACTOR_DOWN", {
    where,
    expected: `generation ${generation} of the rank group to go on`,
    got: "a new one",
    hint: "the run continues from its last good state",
  });
}
