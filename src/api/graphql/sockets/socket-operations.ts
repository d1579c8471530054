import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type ExecutionArgs,
  type ExecutionResult,
  GraphQLError,
  type GraphQLFormattedError,
  getOperationAST,
} from 'graphql';
import { CloseCode, type Context, makeServer, type Server, type SubscribePayload } from 'graphql-ws';
import type { YogaServerInstance } from 'graphql-yoga';
import { InvalidTokenError, type Principal } from '../../../access/identity/callers.ts';
import type { SecretNames } from '../../../audit/masked-names.ts';
import type { AuditedOperation, Exchange } from '../../../gateway/exchange/exchange.ts';
import { statusOf } from '../../../gateway/exchange/refusals.ts';
import { textWeight } from '../../../lib/heap-weight.ts';
import { isObject } from '../../../lib/json.ts';
import { runCooperatively, SLICE_LENGTH } from '../../../lib/yielding.ts';
import { auditSpoolFull, Refusal } from '../../../platform/errors.ts';
import { type HeldMemory, heldMemory, SharedHold } from '../../../platform/held-memory.ts';
import { limitError } from '../execution/documents.ts';
import { type ErrorMask, formatted, textOfResult } from '../execution/error-masking.ts';
import { type EventResults, holdText, once, sharedOf } from '../execution/shared-results.ts';
import type { GraphqlHttpRequest } from '../plugins/http.ts';
import type { PersistedOperations } from '../plugins/persisted-operations.ts';

const MAX_OPERATIONS = 100;
const INIT_WAIT_MS = 3_000;
const BEARER = /^Bearer +([^\s]+)$/i;
export const TRY_AGAIN_LATER = 1013;

/** The property of an operation's payload that says which limit of JSON its message exceeds. */
export const BEYOND_LIMITS: unique symbol = Symbol('beyond the limits of JSON');

const KEPT_CHARACTERS = 64 * 1024;

/** An operation on a WebSocket that has ended, for its audit record. */
export interface OperationRecord {
  /** The exchange of the upgrade request that opened the socket. */
  exchange: Exchange;
  principal: Principal;
  /** The document, variables and name of the operation as they were sent. */
  params: SubscribePayload;
  /** When the operation arrived: by the monotonic clock, and in milliseconds since the epoch. */
  startedTick: number;
  startedAtMs: number;
  /** Whether it was refused because no audit record can be stored. */
  isUnrecordable: boolean;
  /** The first 64 Ki characters that were sent for the operation, with one JSON text per line. */
  responseText: string;
  /** Whether no message that was sent had errors. */
  ok: boolean;
  /** Returns what the audit record shows of the operation, masked by `secrets`; undefined until the runtime adds it. */
  auditedOperation: ((secrets: SecretNames) => AuditedOperation) | undefined;
}

/** An operation in progress. The texts of its results are shared with the other subscribers that receive them. */
interface OpenOperation extends Omit<OperationRecord, 'responseText'> {
  texts: SharedHold<string>[];
  characters: number;
  held: HeldMemory | undefined;
}

/** The place of a text in an operation, in bytes; a list that grows has up to half as many free places. */
const PLACE = 12;

/** The operations in progress of one socket. Each gets an audit record when it ends. */
export class SocketOperations {
  readonly #exchange: Exchange;
  readonly #audit;
  readonly #open = new Map<string, OpenOperation>();
  /**
   * What the operations hold that wait for a result, by their ids: queries and mutations, and subscriptions that have
   * not begun yet.
   */
  readonly #waiting = new Map<string, HeldMemory | undefined>();
  #none = Promise.withResolvers<void>();
  /** The operations that the protocol handles, by their ids; each resolves when it is over. */
  readonly #handled = new Map<unknown, Promise<unknown>>();
  /** What the next message of an id waits for. */
  readonly #turns = new Map<unknown, Promise<unknown>>();

  constructor(
    exchange: Exchange,
    audit: {
      recordOperation(record: OperationRecord): Promise<void>;
      isAuditFull(): boolean;
    },
  ) {
    this.#exchange = exchange;
    this.#audit = audit;
  }

  /**
   * Handles a message of the protocol once an operation of the same id that its client has ended is over. The protocol
   * allows the client to use the id again at once, but would confuse both operations: end one of them, and record one.
   */
  async inTurn(message: unknown, handle: () => Promise<unknown>): Promise<void> {
    const { type, id } = Object(message);
    const before = this.#turns.get(id);
    // Each message waits for the one before it, and an iteration of the event loop: the end of an operation, or of the
    // socket, would wake all of them at once.
    const { promise: turn, resolve: next } = Promise.withResolvers<unknown>();
    this.#turns.set(id, turn);
    await before?.then(() => nextTurn());
    if (type === 'complete') this.left(id);
    const handled = handle();
    if (type === 'subscribe') {
      this.#handled.set(
        id,
        Promise.allSettled([handled]).then(() => this.#handled.delete(id)),
      );
    }
    void turn.then(() => this.#turns.get(id) === turn && this.#turns.delete(id));
    next(type === 'complete' ? this.#handled.get(id) : undefined);
    await handled;
  }

  /** Begins an operation; returns false if it must be refused because it could not be recorded. */
  begin(id: string, principal: Principal, params: SubscribePayload): boolean {
    const isUnrecordable = this.#audit.isAuditFull();
    const held = heldMemory();
    this.#waiting.set(id, held);
    this.#open.set(id, {
      exchange: this.#exchange,
      principal,
      params,
      startedTick: performance.now(),
      startedAtMs: Date.now(),
      isUnrecordable,
      ok: true,
      auditedOperation: undefined,
      texts: [],
      characters: 0,
      held,
    });
    return !isUnrecordable;
  }

  /** Adds a result that is sent to the record of its operation. */
  next(id: string, text: string, hasErrors: boolean, shared?: ReturnType<typeof sharedOf>): void {
    const open = this.#open.get(id);
    if (!open) return;
    open.ok &&= !hasErrors;
    if (open.characters >= KEPT_CHARACTERS) return;
    const recorded = shared?.recordedText ?? recordedText(text);
    if (shared) shared.recordedText = recorded;
    open.characters += text.length + 1;
    open.texts.push(recorded);
    recorded.take(open.held);
    open.held?.charge(PLACE);
  }

  /** Adds the errors with which an operation is refused to its record, and ends it. */
  reject(id: string, errors: readonly GraphQLFormattedError[]): Promise<void> {
    this.next(id, JSON.stringify({ errors }), true);
    return this.end(id);
  }

  /**
   * Ends an operation and records it; further calls do nothing. The last message must be handed to the socket in the
   * tick in which this resolves.
   */
  async end(id: string): Promise<void> {
    const open = this.#open.get(id);
    if (open) {
      this.#open.delete(id);
      const { texts, characters: _characters, held, ...record } = open;
      const lines = texts.map(({ value }) => value);
      for (const text of texts) text.release(held);
      await this.#audit.recordOperation({ ...record, responseText: lines.join('\n').slice(0, KEPT_CHARACTERS) });
    }
    this.answered(id);
  }

  /**
   * Removes an operation from those that wait for a result. Call it no later than in the tick that hands the result to
   * the socket.
   */
  answered(id: string): void {
    if (!this.#waiting.delete(id) || this.#waiting.size > 0) return;
    this.#none.resolve();
    this.#none = Promise.withResolvers();
  }

  /** Stops the work of the operation that its client has ended, or of all because the client has left. */
  left(id?: unknown): void {
    for (const [waiting, held] of this.#waiting) if (id === undefined || id === waiting) held?.leave();
  }

  /** Ends all operations with the error that a guard refuses them. */
  refuse(refusal: Refusal): void {
    for (const { held } of this.#open.values()) held?.refuse(refusal);
  }

  /** Resolves when the results of all waiting operations have been handed to the socket. */
  async whenIdle(): Promise<void> {
    if (this.#waiting.size > 0) await this.#none.promise;
    await nextTurn();
  }
}

/** Returns what records keep of a text: of a longer one the beginning, which must not refer to the rest. */
function recordedText(text: string): SharedHold<string> {
  const recorded = text.length > KEPT_CHARACTERS ? String(Buffer.from(text.slice(0, KEPT_CHARACTERS))) : text;
  return new SharedHold(recorded, textWeight(recorded));
}

/** The state of a socket that the protocol does not hold itself. */
export interface SocketExtra {
  exchange: Exchange;
  /** The principal of the token in `connection_init`; undefined until the token is verified. */
  principal: Principal | undefined;
  operations: SocketOperations;
  /** Sends a message. Resolves when it is sent or the socket has closed. */
  send(message: string): Promise<void>;
  /** Sends a message if nothing waits to be sent before it; otherwise returns false. */
  sendNow(message: string): boolean;
  /** Accepts the socket for a verified token. From then on, it closes when the token ends. */
  admit(principal: Principal): void;
  close(code: number, reason: string): void;
}

interface Dependencies {
  yoga: YogaServerInstance<GraphqlHttpRequest, object>;
  mask: ErrorMask;
  persisted: PersistedOperations;
  /**
   * Verifies an access token and returns its principal; undefined if the token is missing or invalid.
   * @throws Refusal 403 when a client guard refuses the socket.
   */
  authenticateSocket(token: string | undefined, exchange: Exchange): Promise<Principal | undefined>;
}

type Enveloped = ReturnType<Dependencies['yoga']['getEnveloped']>;

/**
 * An operation of a socket that has begun: the result of `prepare`, which the protocol passes on to `execute` or
 * `subscribe`.
 */
interface Running extends ExecutionArgs {
  id: string;
  enveloped: Enveloped;
  extra: SocketExtra;
}

/** Carries the errors with which an operation was refused before it began. */
class RefusedError extends Error {
  readonly errors: readonly GraphQLError[];

  constructor(errors: readonly GraphQLError[]) {
    super('refused');
    this.errors = errors;
  }
}

/** Creates the server of the graphql-transport-ws protocol, which runs operations through the same plugins as HTTP. */
export function socketProtocol(deps: Dependencies): Server<SocketExtra> {
  return makeServer<Record<string, unknown>, SocketExtra>({
    connectionInitWaitTimeout: INIT_WAIT_MS,
    onConnect: (context) => connect(deps, context),
    async onSubscribe(context, id, payload) {
      const { principal, exchange, operations } = context.extra;
      // A socket that is acknowledged always has a principal.
      if (!principal) return [new GraphQLError('the token is missing')];
      if (!operations.begin(id, principal, payload)) return [deps.mask.error(auditSpoolFull(), exchange)];
      if (Object.keys(context.subscriptions).length > MAX_OPERATIONS) {
        return [limitError(`at most ${MAX_OPERATIONS} operations may run at once`)];
      }
      if (BEYOND_LIMITS in payload) return [limitError(`the message ${payload[BEYOND_LIMITS]}`)];
      const prepared = await prepare(deps, context.extra, { id, principal, payload });
      // The protocol reports no error of an operation that its client has ended.
      if (Array.isArray(prepared) && !(id in context.subscriptions))
        await operations.reject(id, prepared.map(formatted));
      return prepared;
    },
    execute: async (args) => {
      const { execute } = (args as Running).enveloped;
      return sendingShared(deps.mask, args as Running, once(await execute(args)));
    },
    subscribe: async (args) => {
      const operation = args as Running;
      operation.extra.operations.answered(operation.id);
      return sendingShared(deps.mask, operation, await subscribeOrReject(operation.enveloped.subscribe(args)));
    },
    onNext: ({ extra }, id, _payload, _args, result) =>
      extra.operations.next(id, textOfResult(result), result.errors !== undefined),
    onError: async ({ extra }, id, _payload, errors) => {
      const formattedErrors = errors
        .flatMap(reasonsOf)
        .map((error) => formatted(deps.mask.error(error, extra.exchange)));
      await extra.operations.reject(id, formattedErrors);
      return formattedErrors;
    },
    // A socket that closes ends all of its operations.
    onComplete: ({ extra: { operations, exchange } }, id) =>
      runCooperatively(() => operations.end(id), exchange.held?.unstoppable),
  });
}

async function connect(
  { authenticateSocket }: Dependencies,
  { extra, connectionParams = {} }: Context<Record<string, unknown>, SocketExtra>,
): Promise<boolean> {
  try {
    const principal = await authenticateSocket(bearerIn(connectionParams, extra.exchange), extra.exchange);
    if (principal) {
      extra.admit(principal);
      return true;
    }
    extra.close(CloseCode.Unauthorized, 'Unauthorized');
  } catch (error) {
    if (!(error instanceof Refusal && statusOf(error) === 403)) {
      extra.close(TRY_AGAIN_LATER, 'Try Again Later');
      throw error;
    }
    extra.close(CloseCode.Forbidden, 'Forbidden');
  }
  return false;
}

/**
 * Returns the token of a socket: of `connection_init`, in any of the forms that clients use, or else of the upgrade
 * request. The first that is present counts.
 */
function bearerIn(params: Record<string, unknown>, { req }: Exchange): string | undefined {
  const headers: Record<string, unknown> = isObject(params.headers) ? params.headers : {};
  const authorization =
    params.authorization ??
    params.Authorization ??
    headers.Authorization ??
    headers.authorization ??
    req.headers.authorization;
  return typeof authorization === 'string' ? BEARER.exec(authorization)?.[1] : undefined;
}

async function prepare(
  { yoga, mask, persisted }: Dependencies,
  extra: SocketExtra,
  { id, principal, payload }: { id: string; principal: Principal; payload: SubscribePayload },
): Promise<ExecutionArgs | readonly GraphQLError[]> {
  const { exchange } = extra;
  const enveloped = yoga.getEnveloped({ exchange, bearer: principal, isLater: true, params: payload });
  try {
    persisted.complete(payload);
    const contextValue = await enveloped.contextFactory();
    return await runCooperatively(() => {
      const document = enveloped.parse(payload.query);
      if (!getOperationAST(document, payload.operationName)) {
        // As over HTTP, when the operation cannot be determined.
        return [
          new GraphQLError('Could not determine what operation to execute.', {
            extensions: { code: 'OPERATION_RESOLUTION_FAILURE' },
          }),
        ];
      }
      const errors: readonly GraphQLError[] = enveloped.validate(enveloped.schema, document);
      if (errors.length > 0) return errors;
      const { operationName, variables: variableValues } = payload;
      const { schema } = enveloped;
      return { id, enveloped, extra, schema, document, operationName, variableValues, contextValue } satisfies Running;
    }, heldMemory());
  } catch (error) {
    if (error instanceof InvalidTokenError && error.details.reason !== 'another_class') {
      // The error is recorded, but no longer sent.
      extra.close(CloseCode.Forbidden, `token ${error.end}`);
    }
    return [mask.error(error, exchange)];
  }
}

/**
 * Subscribes. A subscription that could not begin becomes a stream that rejects, so that it ends with an `error`
 * message rather than a result.
 */
async function subscribeOrReject(
  subscribing: ReturnType<Enveloped['subscribe']>,
): Promise<AsyncIterableIterator<ExecutionResult>> {
  const result = await subscribing;
  if (Symbol.asyncIterator in result) return result;
  const stream: AsyncIterableIterator<ExecutionResult> = {
    next: () => Promise.reject(new RefusedError(result.errors ?? [])),
    [Symbol.asyncIterator]: () => stream,
  };
  return stream;
}

/**
 * Sends the results that subscribers share directly, as their encoded text, and long ones too, which the protocol would
 * encode at once. Yields only the others, which the protocol sends.
 */
function sendingShared(
  mask: ErrorMask,
  { id, extra: { operations, send, sendNow, exchange } }: Running,
  results: EventResults,
): AsyncIterableIterator<ExecutionResult> {
  const head = `{"id":${JSON.stringify(id)},"type":"next","payload":`;
  const sendResultNow: EventResults['sendNow'] = (result) => {
    const shared = result && sharedOf(result);
    if (shared?.text === undefined || !sendNow(`${head}${shared.text}}`)) return false;
    operations.next(id, shared.text, false, shared);
    shared.startDelivery?.('websocket')?.end();
    return true;
  };
  results.sendNow = sendResultNow;
  let isLeft = false;
  // A client that has disconnected is not notified that the work in progress was cancelled.
  const none = (error: unknown): IteratorReturnResult<undefined> => {
    if (!isLeft) throw error;
    return { done: true, value: undefined };
  };
  // Apart from the loop, which would hold the last result while it waits for the next one.
  const sendNext = async (): Promise<IteratorResult<ExecutionResult> | undefined> => {
    const next = await results.next().catch(none);
    if (next.done) return next;
    const shared = sharedOf(next.value);
    const masked = shared?.text === undefined ? await mask.result(next.value, exchange) : undefined;
    const text = shared?.text ?? masked?.stringify?.();
    heldMemory()?.lowerTo(text?.length ?? SLICE_LENGTH);
    if (text === undefined) return { done: false, value: masked ?? next.value };
    await holdText(text.length);
    const span = shared?.startDelivery?.('websocket');
    operations.next(id, text, masked?.errors !== undefined, shared?.text === undefined ? undefined : shared);
    await send(`${head}${text}}`);
    span?.end();
    return undefined;
  };
  const remaining: AsyncIterableIterator<ExecutionResult> = {
    async next() {
      for (;;) {
        const unsent = await sendNext();
        if (unsent) return unsent;
      }
    },
    async return() {
      isLeft = true;
      await results.return?.();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]: () => remaining,
  };
  return remaining;
}

/** Returns the errors of a refusal, unwrapped from the error in which the protocol wraps what a stream throws. */
function reasonsOf(error: GraphQLError): readonly GraphQLError[] {
  const { cause } = error;
  if (cause instanceof RefusedError) return cause.errors;
  return cause instanceof GraphQLError ? [cause] : [error];
}
