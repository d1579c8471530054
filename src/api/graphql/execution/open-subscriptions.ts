import { limitError } from './documents.ts';

/** The maximum memory of one tenant's open subscriptions in this process, in bytes: 16,384 with short documents. */
const MAX_BYTES = 256 * 1024 * 1024;
/** The approximate memory of a subscription without its document and variables, in bytes. */
const OWN_BYTES = 16 * 1024;

/** Limits the memory of each tenant's open subscriptions. */
export class OpenSubscriptions {
  readonly #bytes = new Map<string, number>();

  /**
   * Opens a subscription whose document and variables are so many characters long. Returns a function that closes it.
   * @throws GraphQLError `LIMIT_EXCEEDED` when the tenant's subscriptions would take too much.
   */
  open(nodeId: string, characters: number): () => void {
    // The text is kept, and the parsed document or the request's body beside it.
    const bytes = OWN_BYTES + 2 * characters;
    if (this.#change(nodeId, bytes) > MAX_BYTES) {
      this.#change(nodeId, -bytes);
      throw limitError('the open subscriptions of this node take too much memory: end some, or use shorter documents');
    }
    let isOpen = true;
    return () => {
      if (isOpen) this.#change(nodeId, -bytes);
      isOpen = false;
    };
  }

  #change(nodeId: string, bytes: number): number {
    const total = (this.#bytes.get(nodeId) ?? 0) + bytes;
    if (total === 0) this.#bytes.delete(nodeId);
    else this.#bytes.set(nodeId, total);
    return total;
  }
}
