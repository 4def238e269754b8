import { TroupeError } from "../errors/index.ts";

/**
 * Makes `process.exit` throw while a function of a job runs: on the main thread, where model and training are called
 * before any rank, the program would otherwise end silently.
 * @param name - of the function
 * @throws {TroupeError} `ACTOR_EXIT` where it calls `process.exit`; its own errors
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
