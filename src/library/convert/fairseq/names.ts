import { tensorSizeBytes } from "../../checkpoint/index.ts";
import type { FairseqModel } from "../../models/index.ts";
import { unsharedNames } from "../convert-error.ts";
import { cut, type LazyTensor } from "../lazy-tensor.ts";

type NamedTensors = ReadonlyMap<string, LazyTensor>;

const bothHave = "names that FairSeq's model and Hugging Face's share";

/** Whether these names are of a FairSeq model. Hugging Face's models have a shared embedding, a prefix, or other names. */
export function looksLikeFairseq(names: Iterable<string>): boolean {
  const signs = [
    /^((encoder|decoder)\.sentence_encoder|w2v_encoder|post_extract_proj|(model\.)?encoder\.embed_tokens)\./,
    /^(model\.)?decoder\.(version$|(output_projection|layer_norm)\.)/,
    /\.qkv_proj\./,
  ];
  const all = [...names];
  return (
    all.some((name) => signs.some((sign) => sign.test(name))) &&
    !all.some((name) => name.endsWith("shared.weight"))
  );
}

/**
 * Renames a FairSeq model's tensors to Hugging Face's names.
 * @throws {TroupeError} `CONVERT` for names that are not the model's, or for two names of one tensor
 */
export function fromFairseq(tensors: NamedTensors, model: FairseqModel): Map<string, LazyTensor> {
  const found = new Map<string, LazyTensor>();
  const sources = new Map<string, string>();
  const unknown: string[] = [];
  for (const [entry, tensor] of [...tensors].flatMap(separated)) {
    const name = model.renamed.reduce(
      (text, [pattern, replacement]) => text.replace(pattern, replacement),
      entry,
    );
    if (model.ignored.some((pattern) => pattern.test(name))) continue;
    const own = renamedBy(model.rows, name);
    if (own === undefined) unknown.push(entry);
    else if (sources.get(own) === name) unknown.push(`${entry} again`);
    else if (!sources.has(own)) {
      sources.set(own, name);
      found.set(own, tensor);
    }
  }
  if (unknown.length > 0) throw unsharedNames(bothHave, unknown);
  const [dtype = "F32"] = [...found.values()].map((tensor) => tensor.dtype);
  for (const [name, shape] of Object.entries(model.zeros)) found.set(name, zeros(dtype, shape));
  return found;
}

/**
 * Renames a model's tensors to FairSeq's names, copies included.
 * @throws {TroupeError} `CONVERT` for tensors that FairSeq's model lacks, unless they are zero
 */
export async function toFairseq(
  tensors: NamedTensors,
  model: FairseqModel,
): Promise<Map<string, LazyTensor>> {
  const found = new Map<string, LazyTensor>();
  const unknown: string[] = [];
  for (const [name, tensor] of tensors) {
    if (name in model.zeros) {
      if ((await tensor.read()).some((byte) => byte !== 0)) unknown.push(`${name}, which is not zero`);
      continue;
    }
    const copies = model.rows.flatMap(
      ({ there, here }) => renamedBy([{ there: here, here: there }], name) ?? [],
    );
    if (copies.length === 0) unknown.push(name);
    for (const copy of copies) found.set(copy, tensor);
  }
  if (unknown.length > 0) throw unsharedNames(bothHave, unknown);
  return found;
}

/** The new name by the first row that changes the name or an index in it; undefined if none does. */
function renamedBy(rows: FairseqModel["rows"], name: string): string | undefined {
  for (const { there, here } of rows) {
    const pattern = there.replaceAll(".", "\\.").replace("*", "(\\d+)");
    const [all, place = ""] = new RegExp(`^${pattern}$`).exec(name) ?? [];
    if (all !== undefined) return here.replace("*", place);
  }
  return undefined;
}

/** Splits fused matrices: old releases of FairSeq join queries, keys and values; metaseq joins keys, values and queries. */
function separated([name, tensor]: [string, LazyTensor]): [string, LazyTensor][] {
  const [, attention, form, kind] = /^(.*)\.(in_proj_|qkv_proj\.)(weight|bias)$/.exec(name) ?? [];
  if (attention === undefined) return [[name, tensor]];
  const maps = form === "in_proj_" ? ["q_proj", "k_proj", "v_proj"] : ["k_proj", "v_proj", "q_proj"];
  const numRows = (tensor.shape[0] ?? 0) / 3;
  return maps.map((map, place) => [
    `${attention}.${map}.${kind}`,
    cut(tensor, 0, place * numRows, (place + 1) * numRows),
  ]);
}

function zeros(dtype: LazyTensor["dtype"], shape: readonly number[]): LazyTensor {
  const read = async () => new Uint8Array(tensorSizeBytes(dtype, shape) as number);
  return { dtype, shape, read };
}
