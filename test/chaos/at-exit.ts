/**
 * Has something done should this program end before it is disposed of: whoever ends a long run early leaves no disk mounted, and
 * no program that it has started.
 */
export function atExit(deed: () => void): Disposable {
  // What was begun last goes first: a folder cannot be removed while a disk is mounted in it.
  process.prependListener("exit", deed);
  return { [Symbol.dispose]: () => process.off("exit", deed) };
}
