import { ValidationError } from './errors.ts';

/** A file of a multipart request, as fields get it: nothing of it is read before it is taken. */
export class Upload {
  readonly #read: () => AsyncIterable<Uint8Array>;
  #isTaken = false;

  /** `read` gives the bytes of the file once, and throws where they do not come in full. */
  constructor(read: () => AsyncIterable<Uint8Array>) {
    this.#read = read;
  }

  /**
   * The bytes, which are read from the network no faster than they are taken. Ends when the whole request has come.
   * @throws ValidationError where another field has taken them.
   */
  take(): AsyncIterable<Uint8Array> {
    if (this.#isTaken) throw new ValidationError([{ path: ['file'], message: 'another field has read it' }]);
    this.#isTaken = true;
    return this.#read();
  }

  /** Wherever the variables are written down, in an audit record too, the file is what stood in its place. */
  toJSON(): null {
    return null;
  }
}
