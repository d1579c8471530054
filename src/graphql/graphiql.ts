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
  res.setHeader('Content-Length', page.length);
  res.end(page);
}
