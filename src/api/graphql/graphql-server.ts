import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { GraphQLSchema } from 'graphql';
import type { GraphiQLOptions } from 'graphql-yoga';
import { refuseForgotPassword } from '../../access/identity/callers.ts';
import type { Exchange } from '../../gateway/exchange/exchange.ts';
import { lingerOnClose, refuse } from '../../gateway/exchange/responses.ts';
import { noToken } from '../../platform/errors.ts';
import { PAGE, REVALIDATED, ServedFiles, sendFile } from '../shared/served-files.ts';
import { acceptedRange, bringsForm, rangesOf } from './execution/accepted-types.ts';
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
      // Browsers name HTML in their Accept header.
      const html = acceptedRange(rangesOf(req.headers.accept ?? ''), 'text/html');
      if (graphiql && req.method === 'GET' && html?.isNamed && html.weight > 0) {
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

const OPENING_SCRIPT = join(import.meta.dirname, 'ui/opening.js');
const OPENING_CALL = 'YogaGraphiQL.renderYogaGraphiQL(';

const QUERY = `# Put a token under Headers first.
query Accounts {
  accounts(first: 10) {
    totalCount
    edges { node { id name status } }
  }
}

subscription Updates {
  transactionUpdates(after: "0") {
    cursor
    transaction { id status }
  }
}
`;

/**
 * The Content-Security-Policy of the GraphiQL page. The page contains inline scripts that generate code; it sends
 * requests to its own origin only, and no other site may embed it.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'self' blob: data:",
  "script-src 'self' blob: 'unsafe-inline' 'unsafe-eval'",
  "style-src 'self' 'unsafe-inline'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/**
 * The options of GraphiQL: subscriptions use SSE, and the headers editor offers an Authorization header. Headers persist
 * in the storage that `ui/opening.js` gives it, which lives as long as the browser's tab.
 */
const GRAPHIQL_OPTIONS: GraphiQLOptions = {
  title: 'Portcullis',
  defaultQuery: QUERY,
  headers: '{\n  "Authorization": "Bearer "\n}',
  shouldPersistHeaders: true,
  subscriptionsProtocol: 'SSE',
};

/** Returns GraphiQL as one self-contained page of about 9 MB, made once, under the empty name. It needs no token. */
export function graphiqlFiles(options: GraphiQLOptions): ServedFiles {
  return new ServedFiles(async () => ({
    bytes: Buffer.from(await makePage({ ...GRAPHIQL_OPTIONS, ...options })),
    type: PAGE,
    cacheControl: REVALIDATED,
    policy: CONTENT_SECURITY_POLICY,
  }));
}

/**
 * Renders the page, which `ui/opening.js` opens; the page of Yoga itself loads GraphiQL from a CDN.
 * @throws Error when the package opens its page in a way that this code does not know.
 */
async function makePage(options: GraphiQLOptions): Promise<string> {
  const [{ renderGraphiQL }, script] = await Promise.all([
    import('@graphql-yoga/render-graphiql'),
    readFile(OPENING_SCRIPT, 'utf8'),
  ]);
  const rendered = renderGraphiQL(options);
  const at = rendered.lastIndexOf(OPENING_CALL);
  if (at < 0) throw new Error('the page of GraphiQL is not opened as expected');
  const call = 'openGraphiql(YogaGraphiQL.renderYogaGraphiQL,';
  return `${rendered.slice(0, at)}${script}\n${call}${rendered.slice(at + OPENING_CALL.length)}`;
}
