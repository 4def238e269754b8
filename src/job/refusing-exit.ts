import { TroupeError } from "../errors/index.ts";

/**
 * Has `process.exit` throw for as long as a function of a job runs: on the main thread, where model and training are called
 * before any rank is, the program would end without a word of why.
 * @param name - of the function
 * @throws {TroupeError} `ACTOR_EXIT` where it calls `process.exit`; what it throws
 */
export function refusingExit<T>(name: string, call: () => T): T {
  const { exit } = process;
  process.exit = (code) => {
    throw new TroupeError(
      "ACTOR_EXIT",
      {
        where: "process.exit",
        expected: `${name}(…) of the job to return or to throw`,
        got: `process.exit(${code ?? ""})`,
        hint: "to end the run, throw an error",
      },
      { fields: { code } },
    );
  };
  try {
    return call();
  } finally {
    process.exit = exit;
  }
}
