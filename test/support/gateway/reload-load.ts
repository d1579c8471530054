import { once } from 'node:events';
import { Agent, type ClientRequest, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { listening } from './forwarder.ts';
import { tableText } from './reloaded.ts';

/** Two services; one of them is at another place in each table, so that its answers say which table a request saw. */
export interface Moving extends AsyncDisposable {
  /** The text of a generation. */
  table(generation: number): string;
  /** Answers that have begun and not ended. */
  streams: ServerResponse[];
  /** Connections now open to the one that moves, and all that were ever opened to the one that stays. */
  connections(): Promise<number>;
  steadyConnections(): number;
}

/** Starts both. */
export async function startMoving(): Promise<Moving> {
  const streams: ServerResponse[] = [];
  const moving = createServer((req, res) => answer(req, res, streams));
  const steady = createServer((_req, res) => res.end('steady'));
  // Whatever closes a connection meanwhile is the gateway.
  for (const server of [moving, steady]) server.keepAliveTimeout = 600_000;
  let opened = 0;
  steady.on('connection', () => {
    opened += 1;
  });
  const [movingUrl, steadyUrl] = [await listening(moving), await listening(steady)];
  const endpoint = (method: string, path: string, service = 'moving') => {
    return { methods: [method], path, services: [service], visibility: 'public', max_body_bytes: 0 };
  };
  return {
    table: (generation) =>
      tableText({
        services: { moving: `${movingUrl}/g${generation}`, steady: steadyUrl },
        endpoints: [
          ...[endpoint('GET', '/moving'), endpoint('GET', '/slow'), endpoint('POST', '/upload')],
          ...[endpoint('GET', '/steady', 'steady'), endpoint('GET', `/at/${generation}`)],
        ],
      }),
    streams,
    connections: () =>
      new Promise((resolve, reject) =>
        moving.getConnections((error, count) => (error ? reject(error) : resolve(count))),
      ),
    steadyConnections: () => opened,
    async [Symbol.asyncDispose]() {
      for (const server of [moving, steady]) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
    },
  };
}

/** `/gN/…`: says the generation and the path; `/slow` goes on until its stream is ended, `/upload` says what came. */
function answer(req: IncomingMessage, res: ServerResponse, streams: ServerResponse[]): void {
  const [, generation, path] = /^\/g(\d+)(\/.*)$/.exec(req.url ?? '') ?? [];
  if (path === '/slow') {
    res.flushHeaders();
    streams.push(res);
    return;
  }
  let text = '';
  req.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  req.on('end', () => res.end(JSON.stringify({ generation: Number(generation), path, text })));
}

/** A whole answer, or what became of it. */
export interface Got {
  status: number | undefined;
  text: string;
}

/** A client on kept connections. */
export class Client implements Disposable {
  readonly #agent = new Agent({ keepAlive: true });
  readonly #baseUrl: string;

  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl;
  }

  /** Asks; a request that breaks off is an answer without a status. */
  async get(path: string): Promise<Got> {
    return whole(this.open('GET', path).end());
  }

  /** A request whose body is still to come. */
  open(method: string, path: string): ClientRequest {
    return request(`${this.#baseUrl}${path}`, { method, agent: this.#agent });
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}

/** The whole answer to a request. */
export async function whole(sent: ClientRequest): Promise<Got> {
  try {
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    const text = (await response.toArray()).join('');
    return { status: response.complete ? response.statusCode : undefined, text };
  } catch (error) {
    return { status: undefined, text: String(error) };
  }
}
