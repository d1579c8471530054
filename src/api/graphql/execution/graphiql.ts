import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { GraphiQLOptions } from 'graphql-yoga';
import { PAGE, REVALIDATED, ServedFiles } from '../../shared/served-files.ts';

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
