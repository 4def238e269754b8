/** Name of a step's folder in the folder of a run: `step-000500`. */
export function stepFolder(step: number): string {
  return `step-${String(step).padStart(6, "0")}`;
}

/** The step in a folder's name; undefined for any other name. */
export function stepOf(name: string): number | undefined {
  const [, digits] = /^step-(\d{6,16})$/.exec(name) ?? [];
  return digits === undefined ? undefined : Number(digits);
}
