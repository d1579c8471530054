import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { beforeTests } from '../support/harness/before-tests.ts';
import { type Portcullis, startOnRealServers, startPortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';
import { describeReal } from '../support/services/real.ts';
import { basic, notification } from '../support/webhook/fixture.ts';

const env = { REGISTRATION_BY_MUTATION: 'off' };
const OFF = {
  __typename: 'ForbiddenError',
  permission: 'transactions:write',
  message: 'registration by mutation is off: the owner of the transaction must register it first',
};
const TAKEN = { __typename: 'DuplicateError', message: 'the id is already registered' };
const QUERY = `mutation ($input: RegisterTransactionInput!) { result: registerTransaction(input: $input) {
  __typename ... on Transaction { id status transactionHash } ... on Error { message } ... on ForbiddenError { permission } } }`;

function promises(start: () => Promise<Portcullis>): void {
  const p = beforeTests(start);
  let token: string;
  beforeAll(async () => {
    token = await p.clientToken();
  });

  async function registered(id: string, settings: object = {}) {
    const input = { id, collection: 'OTC_TRANSACTIONS', type: 1, ...settings };
    const answer = await p.call('POST', '/graphql', {
      token,
      json: { query: QUERY, variables: { input } },
      headers: { 'x-correlation-id': 'the same' },
    });
    return { text: answer.text, result: answer.json.data.result };
  }

  async function parked(): Promise<string> {
    const { username, password } = p.webhook;
    const headers = { authorization: basic(username, password) };
    const json = notification({ status: 3, transaction_hash: '0xforeign', contract_address: '0xaddress' });
    expect((await p.call('POST', '/v2/webhooks/custodial', { headers, json })).status).toBe(200);
    await expect.poll(() => parkedIds(json.id)).not.toEqual([]);
    return json.id;
  }

  function parkedIds(id: string) {
    return rows(p).run((k) => k.selectFrom('parked_notifications').select('id').where('id', '=', id));
  }

  it('D6-22: an id that no owner has registered gets the same error, parked or not, and nothing of it is stored', async () => {
    const [known, unknown] = [await parked(), randomUUID()];
    const answers = [await registered(known), await registered(unknown)];
    expect(answers[0]?.result).toEqual(OFF);
    expect(answers[0]?.text).toBe(answers[1]?.text);
    expect(answers[0]?.text).not.toContain('0x');
    expect(await parkedIds(known)).not.toEqual([]);
    const kept = await rows(p).run((k) => k.selectFrom('transaction_ids').select('id').where('id', '=', unknown));
    expect(kept).toEqual([]);
  });

  it('D6-22: an id registered by its owner gets the usual response: success for the same, otherwise a duplicate', async () => {
    const { node_id: nodeId, other_node: other } = p.demo;
    const transactions = p.service.context.transactions;
    const [own, foreign] = [await parked(), await parked()];
    const named = { collection: 'otc_transactions', type: 1, assetId: null } as const;
    await transactions.registerByOwner({ id: own, nodeId, ...named });
    await transactions.registerByOwner({ id: foreign, nodeId: other.node_id, ...named });
    const first = await registered(own);
    expect(first.result).toMatchObject({ __typename: 'Transaction', id: own, transactionHash: '0xforeign' });
    expect((await registered(own)).text).toBe(first.text);
    expect((await registered(own, { type: 2 })).result).toEqual(TAKEN);
    expect((await registered(foreign)).result).toEqual(TAKEN);
  });
}

describe('with REGISTRATION_BY_MUTATION=off, embedded', () => promises(() => startPortcullis({ env })));

describeReal(['postgres', 'redis', 'kafka'], 'with REGISTRATION_BY_MUTATION=off, on real servers', () =>
  promises(() => startOnRealServers({ env })),
);
