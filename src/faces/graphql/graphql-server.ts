import { InvalidTokenError } from '../../access/identity/invalid-token.ts';
import type { Principal } from '../../access/identity/principal.ts';
import type { Exchange } from '../../gateway/exchange/exchange.ts';
import { lingerOnClose, refuse } from '../../gateway/exchange/responses.ts';
import type { Log } from '../../lib/log.ts';
import { invalidRequest, noToken } from '../../platform/errors.ts';
import { asksForPage, sendGraphiql } from './execution/graphiql.ts';
import { bringsForm, passesCsrfCheck } from './execution/http-requests.ts';
import type { OperationObserver } from './execution/operation-observer.ts';
import type { OperationRecord } from './execution/operation-records.ts';
import type { PersistedDocuments, PersistedMode } from './execution/persisted-operations.ts';
import type { UploadLimits } from './execution/upload-form.ts';
import type { GraphqlServices } from './kit/graphql-context.ts';
import type { GraphqlRuntime } from './runtime.ts';

/** What GraphQL stands on. */
export interface GraphqlServerDeps {
  services: GraphqlServices;
  /**
   * Whoever an access token speaks for, judged in full; undefined where it is missing or does not hold.
   * @throws AppError 403 where a guard of its client refuses.
   */
  judge: (token: string | undefined, exchange: Exchange) => Promise<Principal | undefined>;
  /** Whether a token that was good is still good: not expired, not revoked, on a socket of an accepted class. */
  recheck: (principal: Principal, exchange: Exchange) => Promise<boolean>;
  /**
   * Counts an operation of a socket, or one more of a batch.
   * @throws AppError 403 or 429 where a guard of its client refuses, or a permission of the endpoint lacks on a socket.
   */
  passGuards: (principal: Principal, exchange: Exchange) => void | Promise<void>;
  /** Takes the audit record of an operation of a socket. */
  recordOperation: (record: OperationRecord) => void;
  /** What measures and traces operations. */
  observer?: OperationObserver | undefined;
  log: Log;
  /** The most objects that an operation may ask for. */
  maxCost: number;
  /** Of requests with a file: by default 1 GiB, and a minute without a byte. */
  uploadLimits?: UploadLimits | undefined;
  introspection: boolean;
  persistedMode: PersistedMode;
  /** Those in force. */
  persistedDocuments: () => PersistedDocuments;
  /** Errors then suggest no names, and there is no GraphiQL. */
  production: boolean;
  graphiql: boolean;
}

/** GraphQL behind the gateway. */
export interface GraphqlServer {
  /**
   * Answers a request, over HTTP or SSE.
   * @throws AppError 401 without a good token, 400 where the request can be forged; nothing is sent then.
   */
  handle(exchange: Exchange): void;
  /** Takes over the socket of an upgrade, with or without a token. */
  upgrade(exchange: Exchange): void;
  /** Ends SSE without `complete` and WebSockets with 1012: clients come back. */
  stop(): Promise<void>;
}

/** Serves GraphQL. What runs it is loaded with the first operation, or at once in production: it takes 40 MB. */
export function createGraphqlServer(deps: GraphqlServerDeps): GraphqlServer {
  const { log, production } = deps;
  const isPageShown = deps.graphiql && !production;
  let loading: Promise<GraphqlRuntime> | undefined;
  const runtime = (): Promise<GraphqlRuntime> => {
    loading ??= import('./runtime.ts').then(({ createGraphqlRuntime }) => createGraphqlRuntime(deps));
    return loading;
  };
  // Whoever asks first is told what went wrong.
  if (production) runtime().catch(() => undefined);

  return {
    handle(exchange) {
      const { req, res } = exchange;
      const { principal } = exchange.found;
      const failed = (error: unknown) => refuse(exchange, error, log);
      // Its client gets the answer, however early that comes.
      if (bringsForm(req)) lingerOnClose(exchange);
      if (isPageShown && asksForPage(req)) {
        sendGraphiql(res).catch(failed);
        return;
      }
      if (!principal) throw noToken();
      if (principal.tokenUse === 'forgot_password') throw new InvalidTokenError('wrong_use');
      if (!passesCsrfCheck(req.headers)) {
        throw invalidRequest([{ path: 'Content-Type', message: 'must be application/json' }]);
      }
      runtime()
        .then((running) => running.answer(exchange, principal))
        .catch(failed);
    },
    upgrade(exchange) {
      runtime()
        .then((running) => running.accept(exchange))
        .catch((error: unknown) => refuse(exchange, error, log));
    },
    async stop() {
      await (await loading)?.stop();
    },
  };
}
