import type { IncomingMessage, ServerResponse } from 'node:http';

const QUERY = `# Put a token under Headers first: {"Authorization": "Bearer ..."}
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

/** Its scripts stand inside of the page and build code; all that it asks is this origin, and no other page may show it. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'self' blob: data:",
  "script-src 'self' blob: 'unsafe-inline' 'unsafe-eval'",
  "style-src 'self' 'unsafe-inline'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Whether a browser asks for a page, and no program for data. */
export function asksForPage({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && (headers.accept ?? '').includes('text/html');
}

/** Sends GraphiQL as one page that needs nothing from elsewhere; its subscriptions use SSE. */
export async function sendGraphiql(res: ServerResponse): Promise<void> {
  // The page is nine megabytes of text, which most processes never need.
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
  const page = Buffer.from(
    renderGraphiQL({
      title: 'Portcullis',
      defaultQuery: QUERY,
      headers: '{\n  "Authorization": "Bearer "\n}',
      shouldPersistHeaders: false,
      subscriptionsProtocol: 'SSE',
    }),
  );
  res.statusCode = 200;
  res.setHeader('Content-Type', 'text/html; charset=utf-8');
  res.setHeader('Content-Security-Policy', CONTENT_SECURITY_POLICY);
  res.setHeader('X-Content-Type-Options', 'nosniff');
  res.setHeader('Referrer-Policy', 'no-referrer');
  res.setHeader('Content-Length', page.length);
  res.end(page);
}
