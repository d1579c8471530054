const MAX_CHARACTERS = 64 * 1024;

/**
 * Gathers lines and hands them on many at a time. The destination of pino could do it, but looks at all that it has
 * gathered with each line: some ten kilobytes are copied for it.
 */
export class GatheredLines {
  readonly #write: (text: string) => void;
  #lines: string[] = [];
  #characters = 0;

  constructor(write: (text: string) => void) {
    this.#write = write;
  }

  /** Takes a line with its line feed; 64 Ki characters are handed on at once. */
  write(line: string): void {
    this.#lines.push(line);
    this.#characters += line.length;
    if (this.#characters >= MAX_CHARACTERS) this.flush();
  }

  /** Hands on what has come so far. */
  flush(): void {
    if (this.#lines.length === 0) return;
    const text = this.#lines.join('');
    this.#lines = [];
    this.#characters = 0;
    this.#write(text);
  }
}
