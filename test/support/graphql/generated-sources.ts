/** Returns itself, in place of whatever function was to be made. */
function stub(): unknown {
  return stub;
}

/** Collects the source of every function that is made of a text, until it is disposed of. */
export class GeneratedSources {
  readonly #own = globalThis.Function;
  #sources: string[] = [];

  /** @param isMade whether the functions are made too, which costs most of the time */
  constructor(isMade = true) {
    const note = (parts: unknown[]) => void this.#sources.push(parts.join('\n'));
    globalThis.Function = new Proxy(this.#own, {
      construct(made, parts, asked) {
        note(parts);
        return isMade ? Reflect.construct(made, parts, asked) : stub;
      },
      apply(made, self, parts) {
        note(parts);
        return isMade ? Reflect.apply(made, self, parts) : stub;
      },
    });
  }

  /** The sources since the last call. */
  taken(): string[] {
    const taken = this.#sources;
    this.#sources = [];
    return taken;
  }

  [Symbol.dispose](): void {
    globalThis.Function = this.#own;
  }
}
