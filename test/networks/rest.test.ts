import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { envelope } from '../support/gateway/envelopes.ts';
import { openSocket, readAnswer } from '../support/gateway/raw.ts';
import { renameTable } from '../support/harness/database-roles.ts';
import { type Answer, usePortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';

const p = usePortcullis();
let token: string;

beforeAll(async () => {
  token = await p.clientToken();
});

function assign(
  walletId: string,
  networkId: string,
  more: { body?: string; headers?: Record<string, string>; token?: string } = {},
): Promise<Answer> {
  const { headers, ...rest } = more;
  return p.call('POST', `/v1/wallets/${walletId}/networks/${networkId}`, {
    token,
    headers: { 'x-target-server': 'wallets', ...headers },
    ...rest,
  });
}

function networksOf(walletId: string) {
  return rows(p).run((k) =>
    k.selectFrom('wallet_networks').select(['network_id', 'node_id']).where('wallet_id', '=', walletId),
  );
}

describe('POST /v1/wallets/{wallet_id}/networks/{network_id}', () => {
  it('4.4-01 4.4-03 D5-07: is 204 without a body, and the same when repeated', async () => {
    const { demo } = p;
    for (const id of [demo.second_network_id, demo.second_network_id.toUpperCase(), demo.network_id]) {
      const { status, text, headers } = await assign(demo.wallet_id.toUpperCase(), id);
      expect([status, text, headers.get('content-type'), headers.get('content-length')]).toEqual([204, '', null, null]);
    }
    const networks = await networksOf(demo.wallet_id);
    expect(networks.map(({ network_id }) => network_id).sort()).toEqual(
      [demo.network_id, demo.second_network_id].sort(),
    );
    expect(new Set(networks.map(({ node_id }) => node_id))).toEqual(new Set([demo.node_id]));
  });

  it('D5-07: a network of another chain is a 400 that names the error', async () => {
    const { status, json } = await assign(p.demo.wallet_id, p.demo.other_chain_network_id);
    expect(status).toBe(400);
    expect(json).toEqual({
      code: -1,
      domain: 0,
      message: 'invalid_request',
      errors: [{ path: 'network_id', message: "must be a network of the wallet's chain" }],
    });
    expect(await networksOf(p.demo.wallet_id)).not.toContainEqual(
      expect.objectContaining({ network_id: p.demo.other_chain_network_id }),
    );
  });

  it('4.4-02 D4-01: an unknown wallet or network and a wallet of another node are the same 404', async () => {
    const { demo } = p;
    for (const [walletId, networkId] of [
      [randomUUID(), demo.network_id],
      [demo.wallet_id, randomUUID()],
      [randomUUID(), randomUUID()],
      [demo.other_node.wallet_id, demo.network_id],
      [demo.other_node.wallet_id, demo.other_chain_network_id],
      [demo.account_id, demo.network_id],
    ] as const) {
      const { status, text } = await assign(walletId, networkId);
      expect(`${status} ${text}`).toBe(`404 ${envelope('not_found')}`);
    }
    expect(await networksOf(demo.other_node.wallet_id)).toEqual([]);
  });

  it.each([
    ['JSON', '{"network_id":"x"}', 'application/json'],
    ['malformed JSON', '{', 'application/json'],
    ['another content type', '<x/>', 'text/xml'],
    ['900,000 bytes', 'x'.repeat(900_000), 'text/plain'],
  ])('4.4-01 D5-07: a body is ignored: %s', async (_name, body, type) => {
    const headers = { 'content-type': type, 'content-encoding': 'unknown' };
    expect((await assign(p.demo.wallet_id, p.demo.network_id, { body, headers })).status).toBe(204);
  });

  it('D5-07: the response does not wait for an announced body', async () => {
    const socket = openSocket(p.url);
    socket.write(
      `POST /v1/wallets/${p.demo.wallet_id}/networks/${p.demo.network_id} HTTP/1.1\r\nHost: x\r\n` +
        `Authorization: Bearer ${token}\r\nContent-Length: 9999999999\r\nExpect: 100-continue\r\n\r\n`,
    );
    const { status, headers } = await readAnswer(socket);
    expect([status, headers.connection]).toEqual([204, 'close']);
  });

  it('4.4-04: a database error is a masked 500', async () => {
    await renameTable(p, 'wallet_networks', 'wallet_networks_away');
    try {
      const { status, text } = await assign(p.demo.wallet_id, p.demo.network_id);
      expect(`${status} ${text}`).toBe(`500 ${envelope('internal_error')}`);
    } finally {
      await renameTable(p, 'wallet_networks_away', 'wallet_networks');
    }
    expect((await assign(p.demo.wallet_id, p.demo.network_id)).status).toBe(204);
  });
});
