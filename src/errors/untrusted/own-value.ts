/**
 * The value that a table has of its own under a name that a stranger chose; undefined for all others, such as `constructor`, which every object
 * has from the language.
 */
export function ownValue<T>(table: Readonly<Record<string, T>>, name: unknown): T | undefined {
  return typeof name === "string" && Object.hasOwn(table, name) ? table[name] : undefined;
}
