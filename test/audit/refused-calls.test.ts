import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { addClient, type ClientCredentials } from '../support/oauth/clients.ts';

let p: Portcullis;
let client: ClientCredentials;
let reader: string;
let neighbour: string;

beforeAll(async () => {
  p = await startPortcullis();
  client = await addClient(p, { grant_types: ['client_credentials'] });
  reader = await p.clientToken();
  neighbour = await p.clientToken(p.demo.other_node.client);
});
afterAll(() => p[Symbol.asyncDispose]());

const LIST =
  'query ($id: String) { auditRecords(filter: {correlationId: $id}) { edges { node { statusCode isApi requestBody } } } }';

/** What a node's operator sees of a request. */
async function seen(
  token: string,
  id: string,
): Promise<{ statusCode: number; isApi: boolean; requestBody: unknown }[]> {
  await p.service.context.auditWriter.flush();
  const { json } = await p.call('POST', '/graphql', { token, json: { query: LIST, variables: { id } } });
  return json.data.auditRecords.edges.map(({ node }: { node: unknown }) => node);
}

const basic = (id: string, secret: string) => `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`;
const WRONG = 'w'.repeat(43);
const TOKEN = '/v2/oauth/token';

interface Refused {
  path?: string;
  status: number;
  body(): object;
  headers?(): Record<string, string>;
  isApi?: boolean;
}

const refused: Record<string, Refused> = {
  'a wrong secret': {
    status: 401,
    body: () => ({ grant_type: 'client_credentials', ...client, client_secret: WRONG }),
  },
  'a wrong secret by HTTP Basic': {
    status: 401,
    body: () => ({ grant_type: 'client_credentials' }),
    headers: () => ({ authorization: basic(client.client_id, WRONG) }),
  },
  'a wrong secret of a login': {
    status: 401,
    body: () => ({ grant_type: 'password', ...client, client_secret: WRONG, username: 'a', password: 'b' }),
    isApi: false,
  },
  'a grant that the client has not': {
    status: 403,
    body: () => ({ grant_type: 'refresh_token', ...client, refresh_token: 'x' }),
  },
  'an unknown grant': { status: 403, body: () => ({ grant_type: 'implicit', ...client }) },
  'no grant': { status: 400, body: () => ({ grant_type: 1, ...client }) },
  'no secret': { status: 400, body: () => ({ grant_type: 'client_credentials', client_id: client.client_id }) },
  'an id in capitals': {
    status: 401,
    body: () => ({ grant_type: 'client_credentials', client_id: client.client_id.toUpperCase(), client_secret: WRONG }),
  },
  'a revocation with a wrong secret': {
    path: '/v2/oauth/revoke',
    status: 401,
    body: () => ({ ...client, client_secret: WRONG, token: 'x' }),
  },
  'an introspection with a wrong secret': {
    path: '/v2/oauth/introspect',
    status: 401,
    body: () => ({ ...client, client_secret: WRONG, token: 'x' }),
  },
  'an introspection of nothing': { path: '/v2/oauth/introspect', status: 400, body: () => client },
};

describe('a refused call of a known client', () => {
  it.each(Object.entries(refused))('D2-07: is in the audit of its node, without its body: %s', async (_name, call) => {
    const { path = TOKEN, status, body, headers, isApi = true } = call;
    const id = randomUUID();
    const answer = await p.call('POST', path, { json: body(), headers: { 'x-correlation-id': id, ...headers?.() } });
    expect(answer.status).toBe(status);
    expect(await seen(reader, id)).toEqual([{ statusCode: status, isApi, requestBody: null }]);
    expect(await seen(neighbour, id)).toEqual([]);
  });

  it("D2-07: that a guard refuses is in the audit of its node, and so is a disabled client's", async () => {
    const guarded = await addClient(p, { require_certificate: true });
    const disabled = await addClient(p, { status: 'disabled' });
    for (const [credentials, status] of [
      [guarded, 403],
      [disabled, 401],
    ] as const) {
      const id = randomUUID();
      const json = { grant_type: 'client_credentials', ...credentials };
      const answer = await p.call('POST', TOKEN, { json, headers: { 'x-correlation-id': id } });
      expect(answer.status).toBe(status);
      expect(await seen(reader, id)).toEqual([{ statusCode: status, isApi: true, requestBody: null }]);
    }
  });

  it('D2-07: of which nobody knows the client is in no audit of a node', async () => {
    for (const clientId of [randomUUID(), 'x']) {
      const id = randomUUID();
      const json = { grant_type: 'client_credentials', client_id: clientId, client_secret: WRONG };
      await p.call('POST', TOKEN, { json, headers: { 'x-correlation-id': id } });
      expect([...(await seen(reader, id)), ...(await seen(neighbour, id))]).toEqual([]);
    }
  });

  it('D2-07: is answered with its own refusal where the client cannot be looked up', async () => {
    const spy = vi.spyOn(p.service.context.directory, 'client').mockRejectedValue(new Error('away'));
    const answer = await p.call('POST', TOKEN, { json: { grant_type: 1, ...client } });
    spy.mockRestore();
    expect(answer.status).toBe(400);
  });
});
