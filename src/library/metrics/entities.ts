/**
 * F1 of complete names in tags such as `B-PER I-PER O`: a name counts where its kind, its start and its end are right.
 * An `I-` tag that no name of its kind precedes starts one, as in CoNLL's own script.
 * @param guesses - the tags of each text
 * @param tags - the right ones
 */
export function entityF1(
  guesses: readonly (readonly string[])[],
  tags: readonly (readonly string[])[],
): number {
  let both = 0;
  let either = 0;
  for (const [index, right] of tags.entries()) {
    const [ours, theirs] = [entitiesOf(guesses[index] ?? []), entitiesOf(right)];
    either += ours.size + theirs.size;
    both += [...ours].filter((entity) => theirs.has(entity)).length;
  }
  return either === 0 ? 0 : (2 * both) / either;
}

/** Each name of a text as `kind begin end`. */
function entitiesOf(tags: readonly string[]): Set<string> {
  const found = new Set<string>();
  let open: { readonly kind: string; readonly begin: number } | undefined;
  for (const [place, tag] of [...tags, "O"].entries()) {
    const kind = /^[BI]-/.test(tag) ? tag.slice(2) : undefined;
    if (open !== undefined && (tag.startsWith("B-") || kind !== open.kind)) {
      found.add(`${open.kind} ${open.begin} ${place}`);
      open = undefined;
    }
    if (open === undefined && kind !== undefined) open = { kind, begin: place };
  }
  return found;
}
