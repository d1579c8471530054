import pino from 'pino';

/** The buffer of pino's own destination, for as many characters. */
export class GatheredLines {
  readonly #destination = pino.destination({ dest: 1, sync: false, minLength: 64 * 1024 });

  write(line: string): void {
    this.#destination.write(line);
  }

  flush(): void {
    this.#destination.flush();
  }
}
