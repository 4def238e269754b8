// A small CLIP learns which name an emoji has, from three artists' drawings of each; a fourth one's are held out. From nothing.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  AdamW,
  Cosine,
  type DescribedPicture,
  defineJob,
  type Picture,
  readPng,
  imageText as task,
  taskModel,
  tokenizerFromSpec,
} from "troupe";

const tower = { num_attention_heads: 4, hidden_size: 128, intermediate_size: 256, hidden_act: "gelu" };
const clip = {
  model_type: "clip",
  projection_dim: 128,
  text_config: {
    ...tower,
    num_hidden_layers: 2,
    vocab_size: 2560,
    max_position_embeddings: 16,
    eos_token_id: 1,
  },
  vision_config: { ...tower, num_hidden_layers: 4, image_size: 32, patch_size: 4 },
};

interface Emoji {
  readonly name: string;
  readonly sheet_x: number;
  readonly sheet_y: number;
  readonly [hasImage: `has_img_${string}`]: boolean;
}

/** Words alone: "WOMAN, BLOND HAIR" is "woman blond hair". */
const wordsOf = ({ name }: Emoji) => name.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/** One emoji of a sheet of them, each with a pixel's border. */
function cut(sheet: Picture, { sheet_x, sheet_y }: Emoji): Picture {
  const [side, left, top] = [32, 34 * sheet_x + 1, 34 * sheet_y + 1];
  const colours = new Uint8Array(3 * side * side);
  for (let row = 0; row < side; row++) {
    const begin = 3 * ((top + row) * sheet.width + left);
    colours.set(sheet.colours.subarray(begin, begin + 3 * side), 3 * side * row);
  }
  return { height: side, width: side, colours };
}

/** A token for each word that names have. */
function tokenizerOf(emojis: readonly Emoji[]) {
  const specials = ["[UNK]", "<|endoftext|>", "<|startoftext|>"];
  const words = [...specials, ...new Set(emojis.flatMap(wordsOf))];
  const vocab = Object.fromEntries(words.map((word, id) => [word, id]));
  return tokenizerFromSpec({
    kind: "hugging-face",
    tokenizer: {
      version: "1.0",
      added_tokens: specials.map((content, id) => ({ id, content, special: true })),
      normalizer: null,
      pre_tokenizer: { type: "BertPreTokenizer" },
      post_processor: null,
      decoder: { type: "WordPiece", prefix: "##", cleanup: true },
      model: { type: "WordPiece", unk_token: "[UNK]", continuing_subword_prefix: "##", vocab },
    },
  });
}

export default defineJob({
  // `data`: npm's emoji-datasource; `held`: whose drawings are held out: apple, google, facebook or twitter.
  config: {
    data: "node_modules/emoji-datasource",
    held: "twitter",
    steps: 800,
    batch: 96,
    lr: 1e-3,
    evaluateEvery: 100,
  },
  data: async ({ data, held }, { seed }) => {
    const emojis = JSON.parse(await readFile(join(data, "emoji.json"), "utf8")) as readonly Emoji[];
    const drawnBy = async (artist: string): Promise<DescribedPicture[]> => {
      const sheet = await readPng(join(data, "img", artist, "sheets", "32.png"));
      const drawn = emojis.filter((emoji) => emoji[`has_img_${artist}`]);
      return drawn.map((emoji) => ({ ...cut(sheet, emoji), text: wordsOf(emoji).join(" ") }));
    };
    const others = ["apple", "google", "facebook", "twitter"].filter((artist) => artist !== held);
    const train = (await Promise.all(others.map(drawnBy))).flat();
    return task.dataset(
      { train, validation: await drawnBy(held) },
      { source: data, config: clip, tokenizer: tokenizerOf(emojis), seed },
    );
  },
  training: ({ steps, batch, evaluateEvery }) => ({
    steps,
    batchSize: batch,
    clipNorm: 1,
    evaluateEverySteps: evaluateEvery,
  }),
  model: (_, facts) => taskModel(task, clip, facts),
  loss: task.loss,
  predict: task.predict,
  optimizer: (parameters, { lr }) => new AdamW(parameters, { lr, weightDecay: 0.05 }),
  schedule: (optimizer, { steps }) => new Cosine(optimizer, { warmup: steps / 16, end: steps, minLr: 1e-5 }),
});
