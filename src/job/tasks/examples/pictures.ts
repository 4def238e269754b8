import { access } from "node:fs/promises";
import {
  type Awaitable,
  decodePicture,
  decodePng,
  type Picture,
  unreadable,
} from "../../../library/data/index.ts";
import { bytesOf, mediaIn, type StoredRecord } from "./stored.ts";

/** A picture that stays in its file until it is needed. */
export interface StoredPicture {
  /** @throws {TroupeError} `DATA_EXAMPLE` naming the file and the record, `DATA_UNREADABLE`, `DATA_PACKAGE` */
  read(): Awaitable<Picture>;
}

/** Columns of pictures: on Hugging Face's hub, in tars, and of paths. */
const PICTURES = ["image", "img", "picture", "jpg", "jpeg", "png", "webp", "file_name", "path"];

/** @returns a record's picture, which is read again for each batch. @throws {TroupeError} `DATA_EXAMPLE` if it has none, `DATA_MISSING` */
export async function pictureIn(stored: StoredRecord): Promise<StoredPicture> {
  const media = mediaIn(stored, PICTURES);
  if ("file" in media)
    await access(media.file).catch((cause: unknown) => {
      throw unreadable(media.file, cause);
    });
  return readAgain(stored);
}

// A function of its own: one beside the check above would keep the picture that is checked.
function readAgain({ place, folder, again }: StoredRecord): StoredPicture {
  return {
    read: async () => {
      const found = await bytesOf(mediaIn({ record: await again(), place, folder }, PICTURES), place);
      return /\.png$/i.test(found.place)
        ? decodePng(found.bytes, found.place)
        : decodePicture(found.bytes, found.place);
    },
  };
}
