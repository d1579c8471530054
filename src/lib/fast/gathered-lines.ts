const MAX_CHARACTERS = 64 * 1024;

/**
 * A buffer that passes lines on many at a time. Pino's own destination can do so as well, but copies all that it has
 * buffered, some ten kilobytes, with each line.
 */
export class GatheredLines {
  readonly #write: (text: string) => void;
  #lines: string[] = [];
  #characters = 0;

  constructor(write: (text: string) => void) {
    this.#write = write;
  }

  /** Adds a line that ends with a line feed. Once the buffer has 64 Ki characters, they are passed on. */
  write(line: string): void {
    this.#lines.push(line);
    this.#characters += line.length;
    if (this.#characters >= MAX_CHARACTERS) this.flush();
  }

  /** Passes on all lines that are buffered. */
  flush(): void {
    if (this.#lines.length === 0) return;
    const text = this.#lines.join('');
    this.#lines = [];
    this.#characters = 0;
    this.#write(text);
  }
}
