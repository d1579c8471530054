import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { StartError } from '../platform/errors.ts';

/**
 * How long a draining server waits after the last new connection, request or response before it closes idle
 * connections, in milliseconds.
 */
const QUIET_MS = 20;

/**
 * How often a draining server checks for request bodies that have stopped arriving, in milliseconds: such a body delays
 * it for at most twice as long.
 */
const BODY_CHECK_MS = 1_000;

const connectionsOf = new WeakMap<Server, Connections>();

/**
 * Starts listening and returns the actual port.
 * @throws StartError if the port is in use or cannot be listened on.
 */
export async function listen(
  server: Server,
  {
    host,
    port,
    variable,
    reusePort = false,
  }: {
    host: string;
    port: number;
    /** The environment variable that sets the port, for error messages. */
    variable: string;
    /** Whether other processes may listen on the port too (SO_REUSEPORT). */
    reusePort?: boolean;
  },
): Promise<number> {
  connectionsOf.set(server, new Connections(server));
  try {
    await once(server.listen({ port, host, reusePort }), 'listening');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EADDRINUSE')
      throw new StartError(`port ${port} of ${host} is in use: stop its owner, or set ${variable}`);
    throw new StartError(`cannot listen on ${host}:${port} (${String(code)}): set HOST or ${variable}`);
  }
  const bound = server.address();
  return typeof bound === 'object' && bound ? bound.port : port;
}

/**
 * Stops a server gracefully: it accepts no new connection, completes the requests in flight and sends their responses.
 * Each connection is closed after its last response, idle ones once no more requests arrive, and the rest is cut at the
 * deadline. WebSockets are left for their owner to close until then. `giveUp` is called for each request of whose body
 * nothing has come for a second; it refuses the request.
 */
export async function closeGracefully(
  server: Server,
  deadlineMs: number,
  giveUp: (req: IncomingMessage) => void = () => undefined,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  // The HTTP server's own `close` destroys connections whose response is written but not yet sent, which would truncate
  // it.
  NetServer.prototype.close.call(server, () => resolve());
  const connections = connectionsOf.get(server);
  connections?.drain();
  using _cut = setTimeout(() => connections?.cut(), deadlineMs);
  using _checks = setInterval(() => connections?.giveUpStalled(giveUp), BODY_CHECK_MS);
  await promise;
  // A cut connection notifies its requests one tick later.
  await new Promise((resolve) => setImmediate(resolve));
}

/** The connections of a server, and the responses in progress on each. */
class Connections {
  readonly #answering = new Map<Duplex, Set<ServerResponse>>();
  readonly #upgraded = new Set<Duplex>();
  /** The bytes that the connection of each response had read when its request body was last seen incomplete. */
  readonly #unread = new WeakMap<ServerResponse, number>();
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
    // Without a listener for it, a server treats an upgrade request like any other request.
    if (server.listenerCount('upgrade') === 0) return;
    server.prependListener('upgrade', (_req: IncomingMessage, socket: Duplex) => {
      this.#answering.delete(socket);
      this.#upgraded.add(socket);
    });
  }

  drain(): void {
    this.#isDraining = true;
    for (const answer of this.#answers()) endWith(answer);
    this.giveUpStalled(() => undefined);
    this.#postponeClosing();
  }

  cut(): void {
    for (const socket of [...this.#answering.keys(), ...this.#upgraded]) socket.destroy();
  }

  /** Gives up the requests of whose body nothing has come since the last call, and closes their connections. */
  giveUpStalled(giveUp: (req: IncomingMessage) => void): void {
    for (const answer of this.#answers()) {
      const { req } = answer;
      if (req.complete || answer.headersSent) continue;
      const { socket } = req;
      if (this.#unread.get(answer) !== socket.bytesRead) {
        this.#unread.set(answer, socket.bytesRead);
        continue;
      }
      // What might still come is waited for no longer.
      answer.once('close', () => socket.end(() => socket.destroy()));
      giveUp(req);
    }
  }

  #answers(): ServerResponse[] {
    return [...this.#answering.values()].flatMap((answers) => [...answers]);
  }

  /**
   * Restarts the wait before idle connections are closed: a client may be sending a request on one at this moment, and
   * could not tell whether it was received.
   */
  #postponeClosing(): void {
    if (!this.#isDraining) return;
    clearTimeout(this.#quiet);
    // If the event loop is busy, the timer is late: requests that have arrived are read before an immediate runs.
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

/**
 * Makes a response the last of its connection, unless its headers, which allow the client to continue, are already
 * sent.
 */
function endWith(answer: ServerResponse): void {
  if (!answer.headersSent) answer.shouldKeepAlive = false;
}
