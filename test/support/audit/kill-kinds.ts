import type { Credentials } from './kill-fixture.ts';
import type { Recorded } from './kill-journal.ts';

/** A kind of request, and how its client behaves. */
export interface Kind {
  name: string;
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
  /** How many operations a batch has. */
  operations: number;
  /** How often it is sent beside the others. */
  share: number;
  /** When its client leaves: once it has sent everything, half of the body, or the answer has started. */
  leaves: 'sent' | 'half sent' | 'begun' | undefined;
  /** What its record tells where its client has left. */
  isTrue(record: Recorded): boolean;
}

const JSON_TYPE = { 'content-type': 'application/json' };
const BATCH = Array(3).fill({ query: '{ me { subject } }' });

/** Requests of every kind of answer and end. */
export function kindsOf(credentials: Credentials): Kind[] {
  const { token, weakToken, limitedToken, client, webhook } = credentials;
  const [bearer, weak, limited] = [token, weakToken, limitedToken].map((one) => ({ authorization: `Bearer ${one}` }));
  const json = { ...bearer, ...JSON_TYPE };
  const grant = JSON.stringify({ grant_type: 'client_credentials', ...client });
  const rules = '/v1/wallets/00000000-0000-4000-8000-000000000000/rules';
  return [
    kind('a page', 'GET', '/v1/accounts?limit=3', { headers: { ...bearer }, share: 6 }),
    kind('a page of the gateway', 'GET', '/health', {}),
    kind('a head', 'HEAD', '/health', {}),
    kind('a preflight', 'OPTIONS', '/v1/accounts', { headers: { origin: 'https://app.example' } }),
    kind('a 404', 'GET', '/nowhere?token=x', { share: 2 }),
    kind('a 401', 'GET', '/v1/accounts', { share: 2 }),
    kind('a 403', 'GET', '/v1/accounts', { headers: { ...weak }, share: 2 }),
    kind('a 429', 'GET', '/v1/accounts', { headers: { ...limited }, share: 2 }),
    kind('a 400', 'POST', rules, { headers: json, body: '{"name":' }),
    kind('a body', 'POST', rules, { headers: json, body: JSON.stringify({ name: 'x'.repeat(500) }), share: 2 }),
    kind('a token', 'POST', '/v2/oauth/token', { headers: JSON_TYPE, body: grant }),
    kind('a notification', 'POST', '/v2/webhooks/custodial', {
      headers: { ...JSON_TYPE, authorization: webhook },
      body: notification(credentials),
    }),
    kind('a batch', 'POST', '/graphql', {
      headers: json,
      body: JSON.stringify(BATCH),
      operations: BATCH.length,
      share: 2,
    }),
    kind('an operation', 'POST', '/graphql', { headers: json, body: JSON.stringify(BATCH[0]) }),
    kind('a long answer', 'GET', '/v1/moved/long'),
    kind('a stream', 'GET', '/v1/moved/pieces', { share: 4 }),
    kind('a body to a stream', 'POST', '/v1/moved/pieces', { headers: JSON_TYPE, body: '{"password":"x"}', share: 2 }),
    kind('a stream that is left', 'GET', '/v1/moved/endless', { leaves: 'begun', isTrue: ({ aborted }) => aborted }),
    kind('a question that is left', 'GET', '/v1/moved/pieces', { leaves: 'sent' }),
    kind('a body that breaks off', 'POST', rules, { headers: json, body: 'x'.repeat(1_000), leaves: 'half sent' }),
  ];
}

function kind(name: string, method: string, path: string, given: Partial<Kind> = {}): Kind {
  return {
    name,
    method,
    path,
    headers: {},
    body: '',
    operations: 1,
    share: 1,
    leaves: undefined,
    isTrue: () => true,
    ...given,
  };
}

function notification({ transactionId }: Credentials): string {
  const at = '2026-11-01T00:00:00Z';
  return JSON.stringify({ id: transactionId, type: 1, status: 1, created_at: at, updated_at: at });
}
