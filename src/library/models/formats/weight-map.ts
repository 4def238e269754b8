// Maps a family's weights to another program's tensors: a list of rows, used in both directions. Names in layers are given once.

/** A tensor of another program, and Hugging Face's equal tensor: a name, or several that it stacks. */
export type WeightRow<Form = unknown, Here = string> = {
  /** Name in the other program. */
  readonly there: string;
  /** Hugging Face's name. */
  readonly here: Here;
} & Form;

type Names<Here> = Readonly<Record<string, Here>>;

/** Names that are the same in both. */
export function same(...names: readonly string[]): Names<string> {
  return Object.fromEntries(names.map((name) => [name, name]));
}

/** One row per tensor. @param names - there: here @param form - other facts about each */
export function tensors<Here extends string | readonly string[], const Form extends object = object>(
  names: Names<Here>,
  form?: Form,
): WeightRow<Form, Here>[] {
  return Object.entries(names).map(([there, here]) => ({ there, here, ...(form as Form) }));
}

/** The weight of each module. @param names - of modules */
export function weights<Here extends string | readonly string[], const Form extends object = object>(
  names: Names<Here>,
  form?: Form,
): WeightRow<Form, Here>[] {
  return tensors(kindOf("weight", names), form);
}

/** The bias of each module. @param names - of modules */
export function biases<Here extends string | readonly string[], const Form extends object = object>(
  names: Names<Here>,
  form?: Form,
): WeightRow<Form, Here>[] {
  return tensors(kindOf("bias", names), form);
}

/** Weight and bias of each module. @param names - of modules */
export function modules<Here extends string | readonly string[], const Form extends object = object>(
  names: Names<Here>,
  form?: Form,
): WeightRow<Form, Here>[] {
  return Object.entries(names).flatMap(([there, here]) => [
    ...weights({ [there]: here }, form),
    ...biases({ [there]: here }, form),
  ]);
}

/** The rows with a prefix on each side; in both, `*` stands for a list index. */
export function below<Row extends WeightRow>(there: string, here: string, rows: readonly Row[]): Row[] {
  return rows.map((row) => ({ ...row, there: `${there}.${row.there}`, here: `${here}.${row.here}` }));
}

/** The rows for each of `count` layers, with the index after both prefixes. */
export function eachLayer<Row extends WeightRow>(
  count: number,
  there: string,
  here: string,
  rows: readonly Row[],
): Row[] {
  return Array.from({ length: count }, (_, index) =>
    below(`${there}.${index}`, `${here}.${index}`, rows),
  ).flat();
}

function kindOf<Here extends string | readonly string[]>(kind: string, names: Names<Here>): Names<Here> {
  const suffixed = (name: string) => `${name}.${kind}`;
  return Object.fromEntries(
    Object.entries(names).map(([there, here]) => [
      suffixed(there),
      (typeof here === "string" ? suffixed(here) : here.map(suffixed)) as Here,
    ]),
  );
}
