import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { RpcProvider, RpcProviderError } from '../../src/features/gas-fee/rpc-provider.service.ts';
import { type FakeNode, fakeNode, honest } from '../support/gas-fee/node.ts';
import { beforeTests } from '../support/harness/before-tests.ts';

const fake = beforeTests(fakeNode);
let node: RpcProvider;

beforeAll(async () => {
  const url = new URL('/v3/a-key?also=a-key', fake.url);
  url.username = 'user';
  url.password = 'p@ss';
  node = new RpcProvider(url.href);
});
afterAll(async () => {
  await node.close();
});

it('4.9-05 D8-03: requests the chain id and the fees of recent blocks from the whole URL', async () => {
  fake.answers = undefined;
  expect(await node.gasPrices()).toMatchObject({ chainId: 1, baseFee: '2000000000', blockNumber: 16 });
  expect(fake.asked.map(({ method, params }) => [method, params]).sort()).toEqual([
    ['eth_chainId', []],
    ['eth_feeHistory', ['0x5', 'latest', [10, 50, 90]]],
  ]);
  const authorization = `Basic ${Buffer.from('user:p@ss').toString('base64')}`;
  for (const asked of fake.asked) expect(asked).toMatchObject({ target: '/v3/a-key?also=a-key', authorization });
});

it('4.9-05 D8-03: a password without a user name is sent, for providers with a secret per key', async () => {
  const url = new URL(fake.url);
  url.password = 'a secret';
  const keyed = new RpcProvider(url.href);
  fake.answers = undefined;
  fake.asked = [];
  await keyed.gasPrices();
  await keyed.close();
  const authorization = `Basic ${Buffer.from(':a secret').toString('base64')}`;
  expect(fake.asked.map((asked) => asked.authorization)).toEqual([authorization, authorization]);
});

const LONG = `{"jsonrpc":"2.0","id":1,"result":"${'x'.repeat(1024 * 1024)}"}`;
const error = (code: string) => `{"jsonrpc":"2.0","id":1,"error":{"code":${code},"message":"not for a-key"}}`;

const reply =
  (status: number, body: string, headers = {}) =>
  (_req: unknown, res: ServerResponse) =>
    void res.writeHead(status, headers).end(body);

it.each<[string, string, FakeNode['answers']]>([
  ['an error', 'the response is the error -32000', reply(200, error('-32000'))],
  ['an error without a code', 'the response is not a result', reply(200, error('"a-key"'))],
  ['no JSON', 'the response is not a result', reply(200, '<html>')],
  ['nothing', 'the response is not a result', reply(200, '')],
  ['another id', 'the response is not a result', reply(200, '{"jsonrpc":"2.0","id":2,"result":"0x1"}')],
  ['a null result', 'the response is malformed', reply(200, '{"jsonrpc":"2.0","id":1,"result":null}')],
  ['a list', 'the response is not a result', reply(200, '[]')],
  ['a redirect', 'the response has status 307', reply(307, '', { location: 'http://127.0.0.1:1/' })],
  ['500', 'the response has status 500', reply(500, '{"jsonrpc":"2.0","id":1,"result":"0x1"}')],
  ['500 with more than 1 MiB', 'the response has status 500', reply(500, LONG)],
  ['a connection that breaks', 'no answer (UND_ERR_SOCKET)', (req) => void req.socket.destroy()],
  ['no HTTP', 'no answer (HTTPParserError)', (req) => void req.socket.end('SSH-2.0-a-key\r\n')],
  [
    'a body that breaks off',
    'no answer (UND_ERR_SOCKET)',
    (req, res) => void res.write('{"jsonrpc"', () => req.socket.destroy()),
  ],
  ['more than 1 MiB', 'the response has more than 1 MiB', reply(200, LONG)],
])('4.9-05 D8-03: %s is an error with its reason and without the URL', async (_name, message, answers) => {
  fake.answers = answers;
  const fault = await node.gasPrices().then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(fault).toBeInstanceOf(RpcProviderError);
  expect(fault).toHaveProperty('message', message);
  expect(`${fault}`).not.toMatch(/a-key|p@ss|127\.0\.0\.1/);
});

it('4.9-05 D8-03: a node that does not respond in time is an error', async () => {
  fake.answers = () => undefined;
  await expect(node.gasPrices()).rejects.toThrow('no response in time');
});

it('4.9-05 D8-03: a node that returns another chain id is an error, until it returns its own again', async () => {
  fake.answers = undefined;
  fake.says = (method) => (method === 'eth_chainId' ? '0x5' : honest(method));
  await expect(node.gasPrices()).rejects.toThrow('another chain');
  fake.says = honest;
  await expect(node.gasPrices()).resolves.toMatchObject({ chainId: 1 });
});

const LEGACY = new Map<string, unknown>([
  ['eth_chainId', '0x38'],
  ['eth_gasPrice', '0xb2d05e00'],
  ['eth_blockNumber', '0x10'],
]);

/** A provider that answers `eth_feeHistory` with this status and body, and knows the methods from before EIP-1559. */
function legacy(status: number, body: object): FakeNode['answers'] {
  return async (req, res) => {
    const { method } = JSON.parse((await req.toArray()).join(''));
    const isHistory = method === 'eth_feeHistory';
    const answer = isHistory ? body : { result: LEGACY.get(method) };
    res.writeHead(isHistory ? status : 200).end(JSON.stringify({ jsonrpc: '2.0', id: 1, ...answer }));
  };
}

const PRICE = { chainId: 56, baseFee: null, priorityFee: null, gasPrice: '3000000000', blockNumber: 16 };
const failure = (code: number, message: string) => ({ error: { code, message } });

it.each<[string, number, object]>([
  ['as in JSON-RPC', 200, failure(-32_601, 'a-key')],
  ['as in EIP-1474', 200, failure(-32_004, 'a-key')],
  ['by Geth before London', 200, failure(-32_601, 'the method eth_feeHistory does not exist/is not available')],
  ['by Ganache', 200, failure(-32_000, 'Method eth_feeHistory not supported.')],
  ['by Hyperledger Besu', 200, failure(-32_604, 'Method not enabled')],
  ['by a provider with its own status', 400, failure(-32_600, 'Unsupported method: eth_feeHistory on X')],
  ['with 403', 403, failure(-32_601, 'rpc method is not whitelisted')],
  ['with 404', 404, failure(-32_601, 'x')],
  ['without a message', 200, { error: { code: -32_601 } }],
  ['as a null result', 200, { result: null }],
  ['as a history without base fees', 200, { result: { oldestBlock: '0x1', reward: [], gasUsedRatio: [] } }],
  ['as a history with null base fees', 200, { result: { oldestBlock: '0x1', baseFeePerGas: null } }],
  ['as a history with empty base fees', 200, { result: { oldestBlock: '0x1', baseFeePerGas: [] } }],
])(
  '4.9-05 D8-03: without eth_feeHistory, reported %s, the price is taken from eth_gasPrice',
  async (_name, status, body) => {
    const url = new URL(fake.url);
    const provider = new RpcProvider(url.href);
    fake.answers = legacy(status, body);
    expect(await provider.gasPrices()).toEqual(PRICE);
    await provider.close();
  },
);

it.each<[string, number, object, string]>([
  ['a rate limit', 200, failure(-32_005, 'project a-key exceeded its rate'), 'the response is the error -32005'],
  ['a missing block', 200, failure(-32_000, 'header not found'), 'the response is the error -32000'],
  ['401', 401, failure(-32_000, 'a-key is invalid'), 'the response has status 401'],
  ['429', 429, failure(-32_029, 'too many'), 'the response has status 429'],
  ['404 of another server', 404, {}, 'the response has status 404'],
])('4.9-05 D8-03: %s is an error, not a chain without eth_feeHistory', async (_name, status, body, message) => {
  const provider = new RpcProvider(fake.url);
  fake.answers = legacy(status, body);
  await expect(provider.gasPrices()).rejects.toThrow(message);
  await provider.close();
});
