import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { CloseCode, handleProtocols, type Server } from 'graphql-ws';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';
import { InvalidTokenError } from '../../../access/identity/callers.ts';
import { isGuardRefusal } from '../../../access/limits/client-guards.ts';
import type { AccessWatch } from '../../../access/revocation/access-watch.ts';
import type { Exchange } from '../../../gateway/exchange/exchange.ts';
import { heapWeight, textWeight } from '../../../lib/heap-weight.ts';
import { JsonLimitError, type KnownMembers, parseInput, textsIn } from '../../../lib/json.ts';
import type { Log } from '../../../lib/log.ts';
import { runCooperatively } from '../../../lib/yielding.ts';
import { invalidRequest, isOverload, type Refusal } from '../../../platform/errors.ts';
import { inRequest } from '../../../platform/held-memory.ts';
import { KNOWN_MEMBERS } from '../execution/documents.ts';
import {
  BEYOND_LIMITS,
  type OperationRecord,
  type SocketExtra,
  SocketOperations,
  TRY_AGAIN_LATER,
} from './socket-operations.ts';

const MAX_FRAME_BYTES = 64 * 1024;
/** The memory of an operation on a WebSocket without its message, in bytes. */
const MESSAGE_BYTES = 1_024;
/** The memory of an open WebSocket without its operations and its head, in bytes. */
const SOCKET_BYTES = 8 * 1024;
const PING_MS = 12_000;
/**
 * The number of bytes that may wait to be sent on a socket before it is paused, so that no more messages are read from
 * it.
 */
const MAX_UNSENT_BYTES = 1_048_576;
const CLOSE_WAIT_MS = 1_000;
/**
 * When a token has expired: how long its queries and mutations may still take, because clients would send them again,
 * and how long the client may take to confirm the close. Together they are less than a second.
 */
const LAST_ANSWERS_MS = 500;
const LAST_CLOSE_MS = 400;
const INTERNAL_ERROR = 4500;
const SERVICE_RESTART = 1012;

/** The members of a message that the protocol knows: members of an operation and of `connection_init`. */
const KNOWN_OF_MESSAGE: KnownMembers = {
  ...{ id: {}, type: {} },
  payload: {
    ...Object(KNOWN_MEMBERS),
    authorization: {},
    Authorization: {},
    headers: { authorization: {}, Authorization: {} },
  },
};
/** The reason of a close with 4401, of at most 123 bytes. */
const TOKEN_MISSING =
  'Unauthorized: send {"authorization": "Bearer TOKEN"} in connection_init, or Authorization in the upgrade';

const NOT_ACCEPTABLE = 'does not conform to RFC 6455';
const TOKEN = "[\\w!#$%&'*+.^`|~-]+";
const EXTENSION = `${TOKEN}(?:[ \\t]*;[ \\t]*${TOKEN}(?:[ \\t]*=[ \\t]*(?:${TOKEN}|"(?:\\\\?[\\w!#$%&'*+.^\`|~-])+"))?)*`;
/** Matches the header field Sec-WebSocket-Extensions (RFC 6455, section 9.1). */
const EXTENSIONS = new RegExp(`^${EXTENSION}(?:[ \\t]*,[ \\t]*${EXTENSION})*$`);

/** Holds the open WebSockets of GraphQL, pings them, and closes them on stop. */
export class GraphqlSockets {
  readonly #deps;
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_FRAME_BYTES,
    perMessageDeflate: false,
    // One frame in an iteration of the event loop, however many of them a segment brings.
    allowSynchronousEvents: false,
    handleProtocols,
  });
  readonly #answered = new WeakSet<WebSocket>();
  readonly #operations = new WeakMap<WebSocket, SocketOperations>();
  #isStopping = false;
  #pings: NodeJS.Timeout | undefined;

  constructor(deps: {
    protocol: Server<SocketExtra>;
    recordOperation(record: OperationRecord): Promise<void>;
    isAuditFull(): boolean;
    watch: Pick<AccessWatch, 'watch'>;
    log: Log;
  }) {
    this.#deps = deps;
    this.#server.on('headers', (headers, req) => {
      headers.push(`X-Correlation-ID: ${String(req.headers['x-correlation-id'])}`);
    });
    // Emitted synchronously by `handleUpgrade`. With a listener, ws sends no error response itself.
    this.#server.on('wsClientError', ({ message }) => {
      throw invalidRequest([{ path: /Sec-WebSocket-\w+|Upgrade/.exec(message)?.[0] ?? '', message: NOT_ACCEPTABLE }]);
    });
  }

  /**
   * Completes the WebSocket handshake of an upgrade request.
   * @throws Refusal 400 naming the header field that makes the handshake invalid; nothing has been sent then.
   */
  accept(exchange: Exchange): void {
    const { upgrade, req, res } = exchange;
    if (!upgrade) throw new Error('the request is not an upgrade');
    // No extension is negotiated, so ws does not validate this field.
    if (!EXTENSIONS.test(req.headers['sec-websocket-extensions'] ?? 'none')) {
      throw invalidRequest([{ path: 'Sec-WebSocket-Extensions', message: NOT_ACCEPTABLE }]);
    }
    this.#server.handleUpgrade(req, upgrade.socket, upgrade.head, (socket) => {
      res.statusCode = 101;
      // From here on, closing the connection does not count as a client that disconnected before its response.
      if (res.socket) res.detachSocket(req.socket);
      this.#open(socket, exchange, upgrade.socket);
    });
  }

  /**
   * Stops accepting operations and closes every socket with 1012, so that clients reconnect, once its queries and
   * mutations are answered. Sockets that do not confirm the close within a second are terminated.
   */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(
      [...this.#server.clients].map(async (socket) => {
        const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
        await Promise.race([this.#operations.get(socket)?.whenIdle(), closed]);
        close(socket, SERVICE_RESTART, 'Service Restart', CLOSE_WAIT_MS);
        await closed;
      }),
    );
  }

  /** Closes a socket whose token has ended; sends no errors for its operations, so that clients resume them. */
  async #expire(socket: WebSocket, refusal: Refusal): Promise<void> {
    const end = refusal instanceof InvalidTokenError ? refusal.end : undefined;
    if (!end) return close(socket, TRY_AGAIN_LATER, 'Try Again Later', LAST_CLOSE_MS);
    if (end === 'expired') await Promise.race([this.#operations.get(socket)?.whenIdle(), delay(LAST_ANSWERS_MS)]);
    close(socket, CloseCode.Forbidden, `token ${end}`, LAST_CLOSE_MS);
  }

  #open(socket: WebSocket, exchange: Exchange, raw: Duplex): void {
    const { protocol, watch, log } = this.#deps;
    // Resolves when the frame is sent, so that a slow client slows its subscriptions instead of filling memory.
    const send = (data: string) => new Promise<void>((resolve) => socket.send(data, () => resolve()));
    const sendNow = (message: string) => {
      const isFree = socket.readyState === socket.OPEN && raw.writableLength === 0;
      if (isFree) socket.send(message);
      return isFree;
    };
    const operations = new SocketOperations(exchange, this.#deps);
    this.#operations.set(socket, operations);
    const closeWith = (code: number, reason: string) =>
      close(socket, code, code === CloseCode.Unauthorized ? TOKEN_MISSING : reason, CLOSE_WAIT_MS);
    const giveUp = () => closeWith(TRY_AGAIN_LATER, 'Try Again Later');
    if (exchange.held) exchange.held.giveUp = giveUp;
    exchange.held?.charge(SOCKET_BYTES);
    // Any message, including a ping, may cause a response: a client that reads none of them is paused, so its pongs are
    // not read either.
    const slowDown = () => {
      const isSlow = socket.bufferedAmount > MAX_UNSENT_BYTES;
      if (isSlow) socket.pause();
      return isSlow;
    };
    socket.on('ping', slowDown);
    raw.on('drain', () => socket.resume());
    let hasEnded = false;
    // The client sends the operation again after it has reconnected.
    const isOver = () => this.#isStopping || hasEnded || socket.readyState !== socket.OPEN;
    let unwatch: (() => void) | undefined;
    const extra: SocketExtra = {
      exchange,
      principal: undefined,
      operations,
      send,
      sendNow,
      admit: (principal) => {
        extra.principal = principal;
        exchange.held?.moveTo(principal.nodeId);
        // The client may have disconnected while its token was checked.
        if (socket.readyState !== socket.OPEN) return;
        unwatch = watch.watch(principal, exchange.guarded, (refusal) => {
          if (isGuardRefusal(refusal)) return operations.refuse(refusal);
          hasEnded = true;
          void this.#expire(socket, refusal);
        });
      },
      close: closeWith,
    };
    const closed = protocol.opened(
      {
        protocol: socket.protocol,
        send,
        close: closeWith,
        onMessage: (handle) => {
          socket.on('message', (data: RawData) => {
            if (isOver()) return;
            // Nothing more is read until the message is processed.
            socket.pause();
            const held = exchange.held?.openSeparately();
            const handled = runCooperatively(() => {
              if (!slowDown()) socket.resume();
              const text = String(data);
              const message = messageOf(text);
              held?.charge(MESSAGE_BYTES + textWeight(text) + heapWeight(message));
              return operations.inTurn(
                message,
                async () => isOver() || (held ? inRequest(held, () => handle(message)) : handle(message)),
              );
            }, held);
            handled
              .catch((err: unknown) => {
                // It waited for its turn, and is not known yet.
                if (isOverload(err)) return giveUp();
                log.error({ correlation_id: exchange.correlationId, err }, 'could not process a WebSocket message');
                closeWith(INTERNAL_ERROR, 'Internal server error');
              })
              .finally(() => held?.end());
          });
        },
      },
      extra,
    );
    // ws itself closes the socket after a frame that is too long or malformed.
    socket.on('error', (err) =>
      log.debug({ correlation_id: exchange.correlationId, err }, 'WebSocket connection failed'),
    );
    socket.on('close', (code, reason) => {
      unwatch?.();
      if (this.#server.clients.size === 0) {
        clearInterval(this.#pings);
        this.#pings = undefined;
      }
      operations.left();
      void runCooperatively(() => closed(code, String(reason)), exchange.held?.unstoppable);
      exchange.audit.capture.finish();
    });
    this.#answered.add(socket);
    socket.on('pong', () => this.#answered.add(socket));
    this.#pings ??= setInterval(() => void this.#ping(), PING_MS);
  }

  async #ping(): Promise<void> {
    for (const socket of this.#server.clients) {
      await runCooperatively(() => (this.#answered.delete(socket) ? socket.ping() : socket.terminate()), undefined);
    }
  }
}

/**
 * Parses a message. The protocol accepts parsed messages, and closes the socket with 4400 for an invalid one, such
 * as a text that is no JSON or repeats a member. An operation beyond the limits of JSON becomes one that is refused.
 */
function messageOf(text: string): string {
  try {
    return Object(parseInput(text, KNOWN_OF_MESSAGE));
  } catch (error) {
    const { id, type } = Object.fromEntries(textsIn(text));
    const isOperation = error instanceof JsonLimitError && id !== undefined && type === 'subscribe';
    return isOperation ? Object({ id, type, payload: { query: '', [BEYOND_LIMITS]: error.message } }) : '';
  }
}

/** Closes a socket, and terminates it if its client has not confirmed that in time. */
function close(socket: WebSocket, code: number, reason: string, waitMs: number): void {
  socket.close(code, reason);
  const cut = setTimeout(() => socket.terminate(), waitMs);
  socket.once('close', () => clearTimeout(cut));
}
