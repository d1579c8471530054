const MAX_DOCUMENTS = 500;
const MAX_DOCUMENT_LENGTH = 16_384;

/** What was made of the latest documents, by their text. Long ones are made again each time. */
export class DocumentCache<Made> {
  readonly #made = new Map<string, Made>();

  get(document: string): Made | undefined {
    return this.#made.get(document);
  }

  set(document: string, made: Made): void {
    if (document.length > MAX_DOCUMENT_LENGTH) return;
    if (this.#made.size >= MAX_DOCUMENTS) {
      const oldest = this.#made.keys().next();
      if (!oldest.done) this.#made.delete(oldest.value);
    }
    this.#made.set(document, made);
  }
}
