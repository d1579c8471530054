/** An event of a stream, as a client reads it. */
export interface ServerEvent {
  event: string;
  id: string | undefined;
  data: string;
}

interface StreamOptions {
  variables?: object;
  headers?: Record<string, string>;
}

/** Asks a service for the events of a subscription. */
export async function openStream({ url }: { url: string }, token: string, query: string, options: StreamOptions = {}) {
  const { variables, headers } = options;
  const own = { accept: 'text/event-stream', 'content-type': 'application/json', authorization: `Bearer ${token}` };
  const body = JSON.stringify({ query, variables });
  return new EventReader(await fetch(`${url}/graphql`, { method: 'POST', headers: { ...own, ...headers }, body }));
}

/** Reads server-sent events as they come (HTML standard, section 9.2); comments are left out. */
export class EventReader implements AsyncDisposable {
  readonly response: Response;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  #unread = '';
  /** The response is over, without a further event. */
  hasEnded = false;

  constructor(response: Response) {
    if (!response.body) throw new Error('no body');
    this.response = response;
    this.#reader = response.body.getReader();
  }

  /** The next event; undefined where the stream has ended. */
  async next(): Promise<ServerEvent | undefined> {
    for (;;) {
      const end = this.#unread.indexOf('\n\n');
      if (end >= 0) {
        const block = this.#unread.slice(0, end);
        this.#unread = this.#unread.slice(end + 2);
        if (block.startsWith(':')) continue;
        return parseEvent(block);
      }
      const { done, value } = await this.#reader.read();
      if (done) {
        this.hasEnded = true;
        return undefined;
      }
      this.#unread += this.#decoder.decode(value, { stream: true });
    }
  }

  /** The data of the next event, parsed. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of many shapes.
  async nextJson(): Promise<any> {
    const event = await this.next();
    return event?.event === 'next' ? JSON.parse(event.data) : event;
  }

  /** Goes away, as a closed browser tab does. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reader.cancel();
  }
}

function parseEvent(block: string): ServerEvent {
  const fields = new Map(
    block.split('\n').map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')];
    }),
  );
  return { event: fields.get('event') ?? 'message', id: fields.get('id'), data: fields.get('data') ?? '' };
}
