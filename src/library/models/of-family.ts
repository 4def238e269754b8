type Fields = Readonly<Record<string, unknown>>;

/** Makes a class of models for one family, constructed from the fields of a config.json. @throws {TroupeError} `MODEL_CONFIG` */
export function ofFamily<Family, Head extends object, Given extends object = Fields>(
  Model: abstract new (fields: Fields, family: Family) => Head,
  family: Family,
): new (
  fields?: Given,
) => Head {
  const Base = Model as unknown as new (fields: Fields, family: Family) => object;
  return class extends Base {
    constructor(fields: Fields = {}) {
      super(fields, family);
    }
  } as new (
    fields?: Given,
  ) => Head;
}
