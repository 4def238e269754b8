import { TroupeError } from "../../errors/index.ts";

/**
 * Makes `process.exit` throw from now on: code that an actor runs may end with an error, but not its thread without a word.
 * @param host - the process, as an actor's thread sees it
 * @returns what `exit` was
 */
export function refuseExit(host: Pick<NodeJS.Process, "exit">): NodeJS.Process["exit"] {
  const exit = host.exit.bind(host);
  host.exit = (code) => {
    throw new TroupeError(
      "ACTOR_EXIT",
      {
        where: "process.exit",
        expected: "code that an actor runs to return or to throw",
        got: `process.exit(${code ?? ""})`,
        hint: "to end the run, throw an error",
      },
      { fields: { code } },
    );
  };
  return exit;
}
