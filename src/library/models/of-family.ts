type Fields = Readonly<Record<string, unknown>>;

/** A class of models whose family is known: made of the fields of a config.json alone. @throws {TroupeError} `MODEL_CONFIG` */
export function ofFamily<Family, Head extends object>(
  Model: abstract new (fields: Fields, family: Family) => Head,
  family: Family,
): new (
  fields?: Fields,
) => Head {
  const Base = Model as unknown as new (fields: Fields, family: Family) => object;
  return class extends Base {
    constructor(fields: Fields = {}) {
      super(fields, family);
    }
  } as new (
    fields?: Fields,
  ) => Head;
}
