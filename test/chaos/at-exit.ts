/**
 * Runs `deed` if this program ends before the result is disposed of, so that a run that is ended early leaves no disk mounted, and
 * no program running.
 */
export function atExit(deed: () => void): Disposable {
  // The deed that was added last runs first: a folder cannot be removed while a disk is mounted in it.
  process.prependListener("exit", deed);
  return { [Symbol.dispose]: () => process.off("exit", deed) };
}
