import { once } from 'node:events';
import { beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { openStream } from '../support/graphql/event-reader.ts';
import { socketClient } from '../support/graphql/sockets.ts';
import { usePortcullis } from '../support/harness.ts';

const portcullis = usePortcullis();
let token: string;

beforeAll(async () => {
  token = await portcullis.clientToken();
});

const UPDATES =
  'subscription { transactionUpdates(after: "0") { cursor correlationId transaction { id status gasUsed } } }';

function graphql(query: string, bearer: string | undefined = token) {
  return portcullis.call('POST', '/graphql', {
    json: { query },
    ...(bearer === undefined ? {} : { headers: { authorization: `Bearer ${bearer}` } }),
  });
}

function notify(id: string, status: number) {
  const { username, password } = portcullis.webhook;
  return portcullis.call('POST', '/v2/webhooks/custodial', {
    headers: {
      authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
      'x-correlation-id': `notified-${status}`,
    },
    json: {
      id,
      type: 1,
      status,
      gas_used: 21_000,
      created_at: '2026-11-21T10:00:00Z',
      updated_at: `2026-11-21T10:00:0${status}Z`,
    },
  });
}

describe('GraphQL behind the gateway', () => {
  it('DG-02: the demo has 25 accounts, for every kind of token', async () => {
    for (const bearer of [token, await portcullis.loginToken()]) {
      const { json } = await graphql('{ accounts { totalCount edges { node { id } } } }', bearer);
      expect(json.data.accounts.totalCount).toBe(25);
      expect(json.data.accounts.edges).toHaveLength(20);
    }
  });

  it('DG-08 D6-07: a notification reaches subscribers over SSE and WebSocket, with gas as a decimal string', async () => {
    const id = portcullis.demo.transactions.user_transactions;
    await using reader = await openStream(portcullis, token, UPDATES);
    const client = socketClient(portcullis, token);
    const updates = client.iterate({ query: UPDATES });
    expect((await notify(id, 3)).status).toBe(200);
    const expected = {
      data: {
        transactionUpdates: {
          cursor: expect.stringMatching(/^\d+$/),
          correlationId: 'notified-3',
          transaction: { id, status: 'DONE', gasUsed: '21000' },
        },
      },
    };
    expect(await reader.nextJson()).toEqual(expected);
    expect((await updates.next()).value).toEqual(expected);
    await client.dispose();
  });

  it('DG-08: an upgrade with an invalid token or an unknown path is rejected before it happens', async () => {
    for (const [path, headers, status] of [
      ['/graphql', { authorization: 'Bearer nonsense' }, 401],
      ['/elsewhere', {}, 404],
    ] as const) {
      const socket = new WebSocket(`${portcullis.url.replace('http', 'ws')}${path}`, 'graphql-transport-ws', {
        headers,
      });
      // The client library reports its own end as an error.
      socket.on('error', () => undefined);
      const [, response] = await once(socket, 'unexpected-response');
      expect(response.statusCode).toBe(status);
      socket.terminate();
    }
  });

  it('D2-15: HEAD is rejected with 404', async () => {
    for (const headers of [{}, { accept: 'text/html' }]) {
      expect((await portcullis.call('HEAD', '/graphql', { token, headers })).status).toBe(404);
    }
  });
});
