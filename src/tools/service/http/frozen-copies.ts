import type { FrozenModel, LiveModel } from "../../../actors/trainer/index.ts";
import { Refused } from "../../../job/http.ts";

/** The most copies at a time: each has ranks of its own once the model has moved. */
const MOST = 8;

/** The frozen copies that callers of a served model have made, by their paths. */
export class FrozenCopies {
  readonly #copies = new Map<string, FrozenModel>();
  #numMade = 0;
  /** Asked for and not yet there. */
  #numOpening = 0;

  /** Makes a copy. @returns its path, such as `/frozen/1` @throws {Refused} 409 if there are too many; errors of `frozenCopy` */
  async add(model: LiveModel): Promise<string> {
    if (this.#copies.size + this.#numOpening >= MOST)
      throw new Refused(409, `expected at most ${MOST} frozen copies: DELETE one before`);
    this.#numMade += 1;
    const path = `/frozen/${this.#numMade}`;
    this.#numOpening += 1;
    try {
      this.#copies.set(path, await model.frozenCopy());
    } finally {
      this.#numOpening -= 1;
    }
    return path;
  }

  /** @throws {Refused} 404 */
  at(path: string): FrozenModel {
    const copy = this.#copies.get(path);
    if (copy === undefined) throw new Refused(404, `no frozen copy at ${path}: POST /frozen makes one`);
    return copy;
  }

  /** Ends a copy, once the calls that it has are made. @throws {Refused} 404 */
  async close(path: string): Promise<void> {
    const copy = this.at(path);
    this.#copies.delete(path);
    await copy.close();
  }

  /** Ends all; errors of the copies are those of their model. */
  async closeAll(): Promise<void> {
    await Promise.allSettled([...this.#copies.keys()].map((path) => this.close(path)));
  }
}
