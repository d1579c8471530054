import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { RpcProvider, RpcProviderError } from '../../src/domain/gas-fee/rpc-provider.ts';
import { type FakeNode, fakeNode, honest } from '../support/gas-fee/node.ts';

let fake: FakeNode;
let node: RpcProvider;

beforeAll(async () => {
  fake = await fakeNode();
  const url = new URL('/v3/a-key?also=a-key', fake.url);
  url.username = 'user';
  url.password = 'p@ss';
  node = new RpcProvider(url.href);
});
afterAll(async () => {
  await node.close();
  await fake[Symbol.asyncDispose]();
});

it('4.9-05 D8-03: a node is asked for its chain and the fees of recent blocks, at the whole URL', async () => {
  fake.answers = undefined;
  expect(await node.gasPrices()).toMatchObject({ chainId: 1, baseFee: '2000000000', blockNumber: 16 });
  expect(fake.asked.map(({ method, params }) => [method, params]).sort()).toEqual([
    ['eth_chainId', []],
    ['eth_feeHistory', ['0x5', 'latest', [10, 50, 90]]],
  ]);
  const authorization = `Basic ${Buffer.from('user:p@ss').toString('base64')}`;
  for (const asked of fake.asked) expect(asked).toMatchObject({ target: '/v3/a-key?also=a-key', authorization });
});

it('4.9-05 D8-03: a password without a user is sent too, as services have it whose key has a secret', async () => {
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
])('4.9-05 D8-03: %s is a fault that says so, and does not tell the address', async (_name, message, answers) => {
  fake.answers = answers;
  const fault = await node.gasPrices().then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(fault).toBeInstanceOf(RpcProviderError);
  expect(fault).toHaveProperty('message', message);
  expect(`${fault}`).not.toMatch(/a-key|p@ss|127\.0\.0\.1/);
});

it('4.9-05 D8-03: a node that does not answer is a fault after its time', async () => {
  fake.answers = () => undefined;
  await expect(node.gasPrices()).rejects.toThrow('no response in time');
});

it('4.9-05 D8-03: a node that is suddenly of another chain is a fault, until it is of its own again', async () => {
  fake.answers = undefined;
  fake.says = (method) => (method === 'eth_chainId' ? '0x5' : honest(method));
  await expect(node.gasPrices()).rejects.toThrow('another chain');
  fake.says = honest;
  await expect(node.gasPrices()).resolves.toMatchObject({ chainId: 1 });
});
