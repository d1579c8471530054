const NOTHING = Buffer.alloc(0);

/**
 * Collects chunks of bytes in one growing buffer: to keep a buffer object for each would cost a hundred times the
 * memory of a chunk of one byte. A single chunk is used without copying it.
 */
export class GatheredBytes {
  #buffer: Uint8Array = NOTHING;
  #length = 0;

  push(chunk: Uint8Array): void {
    const length = this.#length + chunk.length;
    if (this.#length === 0) this.#buffer = chunk;
    else {
      if (length > this.#buffer.length) this.#grow(Math.max(length, 2 * this.#buffer.length));
      this.#buffer.set(chunk, this.#length);
    }
    this.#length = length;
  }

  get length(): number {
    return this.#length;
  }

  get bytes(): Buffer {
    return Buffer.from(this.#buffer.buffer, this.#buffer.byteOffset, this.#length);
  }

  #grow(capacity: number): void {
    const larger = Buffer.allocUnsafe(capacity);
    larger.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = larger;
  }
}
