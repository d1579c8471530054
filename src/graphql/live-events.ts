import { GraphQLError } from 'graphql';
import type { LoggedEvent } from '../realtime/logged-event.ts';
import {
  CursorExpiredError,
  SlowConsumerError,
  StreamStoppedError,
  TokenEndedError,
} from '../realtime/stream-errors.ts';
import { askerOf, type GraphqlContext } from './context.ts';
import { unauthenticatedError } from './errors.ts';

/** The code of the error that says that the service is stopping: no answer carries it, the stream just ends. */
export const STOPPING = 'STOPPING';

interface LiveEventsRequest {
  after: bigint | undefined;
  matches: (event: LoggedEvent) => boolean;
  /** Where only the events of one transaction can match. */
  transactionId?: string;
}

export interface LiveEvents extends AsyncIterableIterator<LoggedEvent, undefined> {
  /** Settles once whatever is committed from then on is delivered, or the stream has ended: `next` says how. */
  started: Promise<unknown>;
}

/** The events of the caller's node that match, until its token ends in any way; errors are those that a client is told. */
export function liveEvents(context: GraphqlContext, request: LiveEventsRequest): LiveEvents {
  const { services } = context;
  const { principal } = askerOf(context);
  const { nodeId, expiresAtMs } = principal;
  const watchToken = (onEnd: (error?: unknown) => void) => services.watchAccess(principal, onEnd);
  const source = services.streams.subscribe({ nodeId, ...request, expiresAtMs, watchToken });
  return Object.assign(withToldErrors(source), { started: source.started.catch(() => undefined) });
}

/** The same stream; errors are those that a client is told. */
export function withToldErrors<Item>(source: AsyncIterator<Item, undefined>): AsyncIterableIterator<Item, undefined> {
  return {
    next() {
      return source.next().catch(throwTold);
    },
    async return() {
      await source.return?.();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

function throwTold(error: unknown): never {
  throw toldError(error);
}

function toldError(error: unknown): unknown {
  if (error instanceof CursorExpiredError) return coded('cursor_expired', 'CURSOR_EXPIRED');
  if (error instanceof SlowConsumerError) return coded('slow_consumer', 'SLOW_CONSUMER');
  if (error instanceof StreamStoppedError) return coded('the service is stopping', STOPPING);
  if (error instanceof TokenEndedError) return unauthenticatedError();
  return error;
}

function coded(message: string, code: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code } });
}
