import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { fakeNode } from '../support/gas-fee/node.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';

const [NETWORK, DEAD] = [randomUUID(), randomUUID()];
const fake = beforeTests(fakeNode);
let p: Portcullis;

beforeAll(async () => {
  const dead = await fakeNode();
  await dead[Symbol.asyncDispose]();
  p = await startPortcullis({
    env: { GAS_RPC_URLS: `${NETWORK.toUpperCase()}=${fake.url}/?a=1,2, ${DEAD}=${dead.url}` },
  });
});
afterAll(async () => {
  await p[Symbol.asyncDispose]();
});

const UNREACHABLE = 'unavailable: no answer (ECONNREFUSED)';

it('4.9-05 D8-03: gas fees need no token and keep the configured order; one that fails does not affect the others', async () => {
  const { status, json } = await p.call('GET', '/v2/blockchain/gas-fee');
  expect(status).toBe(200);
  expect(json).toEqual({
    data: [
      {
        network_id: NETWORK,
        chain_id: 1,
        base_fee: '2000000000',
        priority_fee: { slow: '1', standard: '2', fast: '3' },
        gas_price: '2000000002',
        block_number: 16,
        updated_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      },
      { network_id: DEAD, error: UNREACHABLE },
    ],
  });
});

it('DG-01: gasFees returns the same as REST', async () => {
  const query = `{ gasFees { networkId chainId baseFee priorityFee { slow standard fast } gasPrice blockNumber updatedAt error } }`;
  const { json } = await p.call('POST', '/graphql', { token: await p.clientToken(), json: { query } });
  const none = { chainId: null, baseFee: null, priorityFee: null, gasPrice: null, blockNumber: null, updatedAt: null };
  expect(json.data.gasFees).toEqual([
    {
      networkId: NETWORK,
      chainId: 1,
      baseFee: '2000000000',
      priorityFee: { slow: '1', standard: '2', fast: '3' },
      gasPrice: '2000000002',
      blockNumber: 16,
      updatedAt: expect.any(String),
      error: null,
    },
    { networkId: DEAD, ...none, error: UNREACHABLE },
  ]);
});

it('4.9-05: without a configured network the list is empty', async () => {
  await using none = await startPortcullis();
  expect((await none.call('GET', '/v2/blockchain/gas-fee')).text).toBe('{"data":[]}');
});
