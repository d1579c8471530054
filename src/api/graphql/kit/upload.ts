import { ValidationError } from './graphql-errors.ts';

/**
 * A file of a multipart request, as a field gets it. None of its bytes are read from the network before a field takes
 * them.
 */
export class Upload {
  readonly #read: () => AsyncIterable<Uint8Array>;
  #isTaken = false;

  /**
   * @param read returns the bytes of the file; it is called once, and its iteration throws if the file does not arrive
   * in full
   */
  constructor(read: () => AsyncIterable<Uint8Array>) {
    this.#read = read;
  }

  /**
   * Returns the bytes, which are read from the network no faster than they are consumed. The iteration ends only when
   * the whole request has arrived.
   * @throws ValidationError when another field has taken them.
   */
  readOnce(): AsyncIterable<Uint8Array> {
    if (this.#isTaken) throw new ValidationError([{ path: ['file'], message: 'was already read by another field' }]);
    this.#isTaken = true;
    return this.#read();
  }

  /**
   * Returns null, the value that the variable of the file was sent with: wherever variables are written, such as in an
   * audit record, the file appears as null.
   */
  toJSON(): null {
    return null;
  }
}
