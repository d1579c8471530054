import { PassThrough } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { print } from 'graphql';
import { expect, it } from 'vitest';
import { CreateClientDocument, PatchClientDocument, SetClientStatusDocument } from '../graphql/generated/graphql.ts';
import { createdClient, operate } from '../support/graphql/administration.ts';
import { filePart, formHeaders, formOf, mapPart, operationsPart, sendRaw } from '../support/graphql/upload-requests.ts';
import { usePortcullis } from '../support/harness.ts';
import { addClient, rows } from '../support/oauth/clients.ts';

/** Longer than the body of a request is waited for without another check of its token. */
const LATE_MS = 700;
const JSON_TYPE = { 'content-type': 'application/json' };
const NAME = 'made by who had left';

const p = usePortcullis();

const mutation = JSON.stringify({
  query: print(CreateClientDocument),
  variables: { input: { name: NAME, grantTypes: ['CLIENT_CREDENTIALS'], scopes: [] } },
});
const call = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'list_networks', arguments: {} },
});
const rule = JSON.stringify({ name: NAME, type: 'transfer' });
const form = formOf([
  { name: 'operations', value: mutation.replace('"input"', '"file":null,"input"') },
  mapPart,
  filePart,
]);

interface Late {
  path: string;
  body: string | Buffer;
  /** Where the body is interrupted. */
  at?: number;
  headers(token: string, secret: string): Record<string, string>;
}

const bearer = (token: string) => ({ ...JSON_TYPE, authorization: `Bearer ${token}` });

const REQUESTS: [string, Late][] = [
  ['GraphQL', { path: '/graphql', body: mutation, headers: bearer }],
  ['a GraphQL form', { path: '/graphql', body: form, headers: formHeaders }],
  [
    'a GraphQL upload',
    { path: '/graphql', body: formOf([operationsPart, mapPart, filePart]), headers: formHeaders, at: -20 },
  ],
  ['REST', { path: '/v1/wallets/00000000-0000-4000-8000-000000000000/rules', body: rule, headers: bearer }],
  ['MCP by token', { path: '/v2/mcp', body: call, headers: bearer }],
  [
    'MCP',
    {
      path: '/v2/mcp',
      body: call,
      headers: (_token, secret) => ({ ...bearer(secret), accept: 'application/json, text/event-stream' }),
    },
  ],
];

const ENDS = [
  {
    why: 'was disabled gets 401',
    status: 401,
    end: (admin: string, id: string) => operate(p, admin, SetClientStatusDocument, { id, status: 'DISABLED' }),
  },
  {
    why: 'may not use its address any more gets 403',
    status: 403,
    end: (admin: string, id: string) =>
      operate(p, admin, PatchClientDocument, { id, input: { allowedIps: ['203.0.113.9'] } }),
  },
];

it.each(ENDS.flatMap((end) => REQUESTS.map(([name, late]) => ({ name, late, ...end }))))(
  'D3-36 D8-08: a request of $name whose body is completed after its client $why and changes nothing',
  async ({ late: { path, body, headers, at = 40 }, status, end }) => {
    const admin = await p.clientToken();
    const scopes = ['clients:manage', 'wallet-rules:write', 'users:migrate'];
    const { client, credentials } = await createdClient(p, admin, { grantTypes: ['CLIENT_CREDENTIALS'], scopes });
    const migrations = await rows(p).run((k) => k.selectFrom('migrations').select('id'));
    const sent = new PassThrough();
    const [first, rest] = [body.slice(0, at), body.slice(at)];
    const answer = sendRaw(p.url, headers(await p.clientToken(credentials), credentials.client_secret), sent, path);
    sent.write(first);
    await delay(LATE_MS);
    await end(admin, client.id);
    sent.end(rest);
    expect((await answer).status).toBe(status);
    const made = await rows(p).run((k) => k.selectFrom('clients').select('id').where('name', '=', NAME));
    expect(made).toEqual([]);
    expect(await rows(p).run((k) => k.selectFrom('migrations').select('id'))).toEqual(migrations);
  },
);

// Tokens expire at a whole second: one that is valid for one second may have only milliseconds left.
it.each([
  ['is valid', 3_600, 2 * LATE_MS],
  ['expires meanwhile', 3, 3_000],
])('D3-36: a request whose token %s is answered, however late its body', async (_name, seconds, lateMs) => {
  const client = await addClient(p, { token_expiry_duration: seconds });
  const sent = new PassThrough();
  const answer = sendRaw(p.url, bearer(await p.clientToken(client)), sent);
  sent.write('{"query":');
  await delay(lateMs);
  sent.end('"{ me { subject } }"}');
  expect((await answer).status).toBe(200);
});
