/** Looks up an untrusted name in a table. Undefined for names that the table only inherits, such as `constructor`. */
export function ownValue<T>(table: Readonly<Record<string, T>>, name: unknown): T | undefined {
  return typeof name === "string" && Object.hasOwn(table, name) ? table[name] : undefined;
}
