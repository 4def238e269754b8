import { optionalPackage } from "./optional-package.ts";
import type { Picture } from "./png.ts";
import { exampleError } from "./refusal.ts";

/** More pixels are refused, as for a photograph of 8192 by 8192. */
const MOST_PIXELS = 1 << 26;

/**
 * Decodes a picture by the package sharp, which users install themselves, beside the thread that calls: JPEG, PNG, WebP, GIF's
 * first frame, TIFF or AVIF. Transparent pixels are drawn on white. It is not turned as its camera says, as PIL does not.
 * @param place - names the picture in errors
 * @throws {TroupeError} `DATA_PACKAGE` without sharp, `DATA_EXAMPLE` for another format, a damaged picture or more than 2²⁶ pixels
 */
export async function decodePicture(bytes: unknown, place: string): Promise<Picture> {
  if (!(bytes instanceof Uint8Array)) throw exampleError(place, "the bytes of a picture", typeof bytes);
  const { default: sharp } = await optionalPackage("sharp", () => import("sharp"));
  try {
    const { data, info } = await sharp(bytes, { failOn: "error", limitInputPixels: MOST_PIXELS })
      .toColourspace("srgb")
      .flatten({ background: "white" })
      .raw({ depth: "uchar" })
      .toBuffer({ resolveWithObject: true });
    if (info.channels === 3) return { height: info.height, width: info.width, colours: data };
    const colours = new Uint8Array(3 * info.height * info.width);
    for (let at = 0; at < colours.length; at++)
      colours[at] = data[Math.floor(at / 3) * info.channels] as number;
    return { height: info.height, width: info.width, colours };
  } catch (cause) {
    throw exampleError(place, "a picture", (cause as Error).message.split("\n")[0]);
  }
}
