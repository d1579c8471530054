import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { EthereumNode, NodeFault } from '../../src/gas-fee/ethereum-node.ts';
import { type FakeNode, fakeNode, honest } from './node.ts';

let fake: FakeNode;
let node: EthereumNode;

beforeAll(async () => {
  fake = await fakeNode();
  const url = new URL('/v3/a-key?also=a-key', fake.url);
  url.username = 'user';
  url.password = 'p@ss';
  node = new EthereumNode(url.href);
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

const reply =
  (status: number, body: string, headers = {}) =>
  (_req: unknown, res: ServerResponse) =>
    void res.writeHead(status, headers).end(body);

it.each<[string, FakeNode['answers']]>([
  ['an error', reply(200, '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}')],
  ['no JSON', reply(200, '<html>')],
  ['nothing', reply(200, '')],
  ['another id', reply(200, '{"jsonrpc":"2.0","id":2,"result":"0x1"}')],
  ['a null result', reply(200, '{"jsonrpc":"2.0","id":1,"result":null}')],
  ['a list', reply(200, '[]')],
  ['a redirect', reply(307, '', { location: 'http://127.0.0.1:1/' })],
  ['500', reply(500, '{"jsonrpc":"2.0","id":1,"result":"0x1"}')],
  ['a connection that breaks', (req) => void req.socket.destroy()],
  ['a body that breaks off', (req, res) => void res.write('{"jsonrpc"', () => req.socket.destroy())],
  ['more than 1 MiB', reply(200, `{"jsonrpc":"2.0","id":1,"result":"${'x'.repeat(1024 * 1024)}"}`)],
])('4.9-05 D8-03: %s is a fault, which does not tell the address', async (_name, answers) => {
  fake.answers = answers;
  const fault = await node.gasPrices().then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(fault).toBeInstanceOf(NodeFault);
  expect(`${fault}`).not.toMatch(/a-key|p@ss|127\.0\.0\.1/);
});

it('4.9-05 D8-03: a node that does not answer is a fault after its time', async () => {
  fake.answers = () => undefined;
  await expect(node.gasPrices()).rejects.toThrow('no answer in time');
});

it('4.9-05 D8-03: a node that is suddenly of another chain is a fault, until it is of its own again', async () => {
  fake.answers = undefined;
  fake.says = (method) => (method === 'eth_chainId' ? '0x5' : honest(method));
  await expect(node.gasPrices()).rejects.toThrow('another chain');
  fake.says = honest;
  await expect(node.gasPrices()).resolves.toMatchObject({ chainId: 1 });
});
