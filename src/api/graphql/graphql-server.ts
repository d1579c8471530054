import type { GraphQLSchema } from 'graphql';
import { refuseForgotPassword } from '../../access/identity/callers.ts';
import type { Exchange } from '../../gateway/exchange/exchange.ts';
import { lingerOnClose, refuse } from '../../gateway/exchange/responses.ts';
import { noToken } from '../../platform/errors.ts';
import { sendFile } from '../shared/served-files.ts';
import { acceptedRange, bringsForm, rangesOf } from './execution/accepted-types.ts';
import { graphiqlFiles } from './execution/graphiql.ts';
import type { createGraphqlRuntime, GraphqlDependencies } from './runtime.ts';

type GraphqlRuntime = ReturnType<typeof createGraphqlRuntime>;

/** Serves GraphQL behind the gateway. */
export type GraphqlServer = ReturnType<typeof createGraphqlServer>;

/**
 * Creates the GraphQL server. Its runtime takes 40 MB, so it is loaded with the first operation, except in production,
 * where it is loaded at once.
 */
export function createGraphqlServer(deps: GraphqlDependencies & { schema(): Promise<GraphQLSchema> }) {
  const { log, production } = deps;
  const graphiql = deps.graphiql && graphiqlFiles(deps.graphiql);
  let loading: Promise<GraphqlRuntime> | undefined;
  async function load(): Promise<GraphqlRuntime> {
    const [schema, loaded] = await Promise.all([deps.schema(), import('./runtime.ts')]);
    return loaded.createGraphqlRuntime(schema, deps);
  }
  function runtime(): Promise<GraphqlRuntime> {
    loading ??= load();
    return loading;
  }
  // If loading fails, the first request gets the error.
  if (production) runtime().catch(() => undefined);

  return {
    /**
     * Answers a request over HTTP, with JSON or an event stream, or takes over the socket of an upgrade request, with or
     * without a token.
     * @throws Refusal 401 without a valid token; nothing has been sent then. No page of another site can forge a
     * request, since it can send an Authorization header only after a preflight (Fetch standard, CORS-safelisted request
     * headers).
     */
    handle(exchange: Exchange): void {
      const { req, upgrade } = exchange;
      const { principal } = exchange.state;
      const failed = (error: unknown) => refuse(exchange, error, log);
      if (upgrade) {
        runtime()
          .then((running) => running.accept(exchange))
          .catch(failed);
        return;
      }
      // Lets the client receive a response that is sent before the upload has been read.
      if (bringsForm(req)) lingerOnClose(exchange);
      if (graphiql && req.method === 'GET' && acceptsPage(req.headers.accept)) {
        graphiql
          .find('')
          .then((page) => page && sendFile(exchange, page))
          .catch(failed);
        return;
      }
      if (!principal) throw noToken();
      refuseForgotPassword(principal);
      runtime()
        .then((running) => running.answer(exchange, principal))
        .catch(failed);
    },
    /** Ends event streams without `complete` and closes WebSockets with 1012, so that clients reconnect. */
    async stop(): Promise<void> {
      await (await loading)?.stop();
    },
  };
}

/** Checks whether a client names HTML in its Accept header, as browsers do. */
function acceptsPage(accept = ''): boolean {
  const { isNamed = false, weight = 0 } = acceptedRange(rangesOf(accept), 'text/html') ?? {};
  return isNamed && weight > 0;
}
