import { once } from 'node:events';
import { type Dispatcher, request } from 'undici';

const QUERY = 'subscription { transactionUpdates { cursor transaction { id status } } }';
const TRANSACTION_ID = /"transaction":\{"id":"([^"]+)"/;

export interface Subscriber {
  stop(): void;
}

interface SubscriberOptions {
  url: string;
  token: string;
  dispatcher: Dispatcher;
  /** Called for each update with the transaction's id and `performance.now()` of its last byte. */
  onUpdate(transactionId: string, at: number): void;
}

/** Opens `transactionUpdates` over SSE, and returns once the server has begun to answer. */
export async function subscribe({ url, token, dispatcher, onUpdate }: SubscriberOptions): Promise<Subscriber> {
  const { statusCode, body } = await request(`${url}/graphql`, {
    method: 'POST',
    dispatcher,
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'text/event-stream',
    },
    body: JSON.stringify({ query: QUERY }),
    bodyTimeout: 0,
  });
  if (statusCode !== 200) throw new Error(`no subscription: ${statusCode} ${await body.text()}`);
  body.setEncoding('utf8');
  body.on('error', () => undefined);
  let pending = '';
  body.on('data', (chunk: string) => {
    const at = performance.now();
    const events = `${pending}${chunk}`.split('\n\n');
    pending = events.pop() ?? '';
    for (const event of events) {
      const id = TRANSACTION_ID.exec(event)?.[1];
      if (id !== undefined) onUpdate(id, at);
      else if (event.includes('"errors"')) throw new Error(`the subscription failed: ${event}`);
    }
  });
  await once(body, 'data');
  return { stop: () => body.destroy() };
}
