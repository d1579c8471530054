/**
 * Gathers chunks of bytes in one buffer that grows: a buffer object for each chunk would cost a hundred times what a chunk
 * of one byte does. A single chunk is used as it is.
 */
export class GatheredBytes {
  #buffer: Uint8Array = Buffer.alloc(0);
  #length = 0;

  push(piece: Uint8Array): void {
    const length = this.#length + piece.length;
    if (this.#length === 0) this.#buffer = piece;
    else {
      if (length > this.#buffer.length) this.#grow(Math.max(length, 2 * this.#buffer.length));
      this.#buffer.set(piece, this.#length);
    }
    this.#length = length;
  }

  get length(): number {
    return this.#length;
  }

  get bytes(): Buffer {
    return Buffer.from(this.#buffer.buffer, this.#buffer.byteOffset, this.#length);
  }

  #grow(room: number): void {
    const larger = Buffer.allocUnsafe(room);
    larger.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = larger;
  }
}
