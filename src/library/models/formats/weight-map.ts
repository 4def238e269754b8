// How a family says in which tensors of another program its weights lie: a list of rows, read from either side. Names that come in
// layers are said once.

/** A tensor of another program, and Hugging Face's that holds the same: a name, or several that lie in it one below the other. */
export type WeightRow<Form = unknown, Here = string> = {
  /** Its name in the other program. */
  readonly there: string;
  /** Hugging Face's. */
  readonly here: Here;
} & Form;

type Names<Here> = Readonly<Record<string, Here>>;

/** Names that are the same on both sides. */
export function same(...names: readonly string[]): Names<string> {
  return Object.fromEntries(names.map((name) => [name, name]));
}

/** A row a tensor. @param names - there: here @param form - what else is true of each */
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

/** The same rows below a name on each side; in both, `*` stands for the place in a list. */
export function below<Row extends WeightRow>(there: string, here: string, rows: readonly Row[]): Row[] {
  return rows.map((row) => ({ ...row, there: `${there}.${row.there}`, here: `${here}.${row.here}` }));
}

/** The same rows for each of `count` layers, by their places behind both names. */
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
