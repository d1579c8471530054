import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { StartError } from '../platform/errors.ts';

interface Address {
  host: string;
  port: number;
  /** The variable that names the port, for the message. */
  variable: string;
}

/** How long nobody asks anything before idle connections are closed at a stop. */
const QUIET_MS = 20;

const connectionsOf = new WeakMap<Server, Connections>();

/**
 * Listens, and gives the port that it got.
 * @throws StartError when the port is taken or may not be used.
 */
export async function listen(server: Server, { host, port, variable }: Address): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  connectionsOf.set(server, new Connections(server));
  server.once('error', reject);
  server.listen(port, host, resolve);
  try {
    await promise;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EADDRINUSE')
      throw new StartError(`port ${port} of ${host} is in use: stop its owner, or set ${variable}`);
    throw new StartError(`cannot listen on ${host}:${port} (${String(code)}): set HOST or ${variable}`);
  }
  server.off('error', reject);
  const bound = server.address();
  return typeof bound === 'object' && bound ? bound.port : port;
}

/**
 * Takes no new connection, lets requests in flight finish and their answers reach the socket, closes each connection
 * after its last one, the idle ones once nobody asks anything more, and cuts what is left at the deadline. WebSockets
 * are for their owner to close.
 */
export async function closeGracefully(server: Server, deadlineMs: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  // The HTTP server's own `close` destroys connections whose answer is written and not yet sent: it cuts the answer.
  NetServer.prototype.close.call(server, () => resolve());
  const connections = connectionsOf.get(server);
  connections?.drain();
  const timer = setTimeout(() => connections?.cut(), deadlineMs);
  await promise;
  clearTimeout(timer);
  // A connection that was cut tells its requests of it a turn later.
  await new Promise((resolve) => setImmediate(resolve));
}

/** What the connections of one server are doing. */
class Connections {
  readonly #answering = new Map<Duplex, Set<ServerResponse>>();
  readonly #upgraded = new Set<Duplex>();
  #isDraining = false;
  #quiet: NodeJS.Timeout | undefined;

  constructor(server: Server) {
    server.on('connection', (socket: Socket) => {
      this.#answering.set(socket, new Set());
      this.#postponeClosing();
      socket.once('close', () => {
        this.#answering.delete(socket);
        this.#upgraded.delete(socket);
      });
    });
    server.prependListener('request', (req, res) => this.#begin(req, res));
    // A server without such a listener answers what offers an upgrade as any other request.
    if (server.listenerCount('upgrade') === 0) return;
    server.prependListener('upgrade', (_req: IncomingMessage, socket: Duplex) => {
      this.#answering.delete(socket);
      this.#upgraded.add(socket);
    });
  }

  drain(): void {
    this.#isDraining = true;
    for (const answers of this.#answering.values()) for (const answer of answers) endWith(answer);
    this.#postponeClosing();
  }

  cut(): void {
    for (const socket of [...this.#answering.keys(), ...this.#upgraded]) socket.destroy();
  }

  /** Who keeps connections may be sending on one right now, and could not tell whether it was heard. */
  #postponeClosing(): void {
    if (!this.#isDraining) return;
    clearTimeout(this.#quiet);
    // A busy loop is late: what came meanwhile is read before an immediate runs.
    const quiet = setTimeout(() => setImmediate(() => this.#quiet === quiet && this.#closeIdle()), QUIET_MS);
    this.#quiet = quiet;
  }

  #closeIdle(): void {
    for (const [socket, answers] of this.#answering) if (answers.size === 0) socket.destroy();
  }

  #begin({ socket }: IncomingMessage, answer: ServerResponse): void {
    this.#answering.get(socket)?.add(answer);
    if (this.#isDraining) endWith(answer);
    this.#postponeClosing();
    answer.once('close', () => {
      const answers = this.#answering.get(socket);
      answers?.delete(answer);
      if (!this.#isDraining || answers?.size !== 0) return;
      if (answer.shouldKeepAlive) this.#postponeClosing();
      else socket.destroySoon();
    });
  }
}

/** Makes an answer the last of its connection; one that has begun has told its client otherwise, who may go on. */
function endWith(answer: ServerResponse): void {
  if (!answer.headersSent) answer.shouldKeepAlive = false;
}
