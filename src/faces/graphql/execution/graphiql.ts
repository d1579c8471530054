import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';

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

let made: Promise<Buffer> | undefined;

/** Returns the GraphiQL page, about 9 MB of HTML, which is rendered on first use. */
export function graphiqlPage(): Promise<Buffer> {
  made ??= makePage().catch((error: unknown) => {
    made = undefined;
    throw error;
  });
  return made;
}

/**
 * Renders GraphiQL as one self-contained page: subscriptions use SSE, the headers editor offers an Authorization
 * header, and `ui/opening.js` opens it.
 * @throws Error when the package opens its page in a way that this code does not know.
 */
async function makePage(): Promise<Buffer> {
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
  const rendered = renderGraphiQL({
    title: 'Portcullis',
    defaultQuery: QUERY,
    headers: '{\n  "Authorization": "Bearer "\n}',
    shouldPersistHeaders: false,
    subscriptionsProtocol: 'SSE',
  });
  const at = rendered.lastIndexOf(OPENING_CALL);
  if (at < 0) throw new Error('the page of GraphiQL is not opened as expected');
  const script = await readFile(OPENING_SCRIPT, 'utf8');
  const call = 'openGraphiql(YogaGraphiQL.renderYogaGraphiQL,';
  return Buffer.from(`${rendered.slice(0, at)}${script}\n${call}${rendered.slice(at + OPENING_CALL.length)}`);
}

/** Sends the GraphiQL page as the response. */
export async function sendGraphiql(res: ServerResponse): Promise<void> {
  const page = await graphiqlPage();
  res.statusCode = 200;
  res.setHeader('Content-Type', 'text/html; charset=utf-8');
  res.setHeader('Content-Security-Policy', CONTENT_SECURITY_POLICY);
  res.setHeader('X-Content-Type-Options', 'nosniff');
  res.setHeader('Referrer-Policy', 'no-referrer');
  res.setHeader('Content-Length', page.length);
  res.end(page);
}
