import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Log, silentLog } from '../../src/lib/log.ts';
import { type Anvil, startAnvil } from '../support/gas-fee/anvil.ts';
import { describeAnvil } from '../support/gas-fee/describe-anvil.ts';
import { fakeNode } from '../support/gas-fee/node.ts';
import { type RpcProxy, rpcProxy } from '../support/gas-fee/rpc-proxy.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { type FaultProxy, faultProxy } from '../support/services/fault-proxy.ts';

const KEY = 'k3y-of-the-address';
const GWEI = 1_000_000_000n;
const SENDERS = 10;
const BLOCKS = 5;
const FRESH_MS = 5_000;
const STALE_MS = 60_000;
const IDS = Array.from({ length: 5 }, () => randomUUID());
const [MAIN = '', SIDE = '', , , STRAY = ''] = IDS;

const hex = (value: bigint | number) => `0x${value.toString(16)}`;

/** Mines blocks; in the one of number n ten transactions give tips of n to 10 n gwei. */
async function mineTips(node: Anvil): Promise<void> {
  const accounts = (await node.rpc('eth_accounts')) as string[];
  for (let block = 1; block <= BLOCKS; block += 1) {
    for (const [at, from] of accounts.slice(0, SENDERS).entries()) {
      const tip = BigInt((at + 1) * block) * GWEI;
      const fees = { maxPriorityFeePerGas: hex(tip), maxFeePerGas: hex(1_000n * GWEI) };
      await node.rpc('eth_sendTransaction', { from, to: accounts[0], value: '0x1', gas: '0x5208', ...fees });
    }
    await node.rpc('evm_mine');
  }
}

describeAnvil('gas fees of real nodes', () => {
  const stack = new AsyncDisposableStack();
  const lines: string[] = [];
  const clock = { nowMs: Date.now() };
  let main: Anvil;
  let side: Anvil;
  let ways: { main: RpcProxy; side: RpcProxy; stray: RpcProxy; slow: FaultProxy };
  let p: Portcullis;

  beforeAll(async () => {
    [main, side] = await Promise.all([startAnvil('--chain-id', '1', '--no-mining'), startAnvil('--chain-id', '137')]);
    stack.use(main);
    stack.use(side);
    await mineTips(main);
    const dead = await fakeNode();
    await dead[Symbol.asyncDispose]();
    ways = {
      main: stack.use(await rpcProxy(main.url)),
      side: stack.use(await rpcProxy(side.url)),
      stray: stack.use(await rpcProxy(main.url)),
      slow: stack.use(await faultProxy(Number(new URL(side.url).port))),
    };
    const urls = [ways.main.url, ways.side.url, dead.url, `http://127.0.0.1:${ways.slow.port}`, ways.stray.url];
    // Anvil itself knows no other path than `/`.
    const paths = urls.map((url) => (url.endsWith(`:${ways.slow.port}`) ? '/' : `/v3/${KEY}`));
    const nodes = urls.map((url, at) => `${IDS[at]}=${url.replace('//', `//user:${KEY}@`)}${paths[at]}?key=${KEY}`);
    const tell = (fields: object, message?: string) => {
      const { err } = fields as { err?: Error };
      lines.push(JSON.stringify({ ...fields, message, err: `${err?.stack} ${JSON.stringify(err?.cause)}` }));
    };
    const log: Log = { ...silentLog, debug: tell, info: tell, warn: tell, error: tell };
    p = stack.use(
      await startPortcullis({
        env: { GAS_RPC_URLS: nodes.join(',') },
        overrides: { nowMs: () => clock.nowMs, log },
      }),
    );
  });
  afterAll(() => stack.disposeAsync());

  const fees = async () => (await p.call('GET', '/v2/blockchain/gas-fee')).json.data;

  it('4.9-05 D8-03: base fee and tips match eth_feeHistory of real transactions', async () => {
    const [first] = await fees();
    const history = (await main.rpc('eth_feeHistory', '0x5', 'latest', [10, 50, 90])) as {
      baseFeePerGas: string[];
      reward: string[][];
    };
    // The middle one of the five blocks, and of its ten equal transactions the first, the fifth and the ninth.
    const tips = { slow: 3n * GWEI, standard: 15n * GWEI, fast: 27n * GWEI };
    expect(history.reward[2]).toEqual(Object.values(tips).map(hex));
    const baseFee = BigInt(history.baseFeePerGas.at(-1) ?? 0);
    expect(first).toEqual({
      network_id: MAIN,
      chain_id: 1,
      base_fee: `${baseFee}`,
      priority_fee: { slow: `${tips.slow}`, standard: `${tips.standard}`, fast: `${tips.fast}` },
      gas_price: `${baseFee + tips.standard}`,
      block_number: BLOCKS,
      updated_at: new Date(clock.nowMs).toISOString(),
    });
  });

  it('4.9-05 D8-03: a network that returns another chain, a redirect or too much is unavailable, and others are not affected', async () => {
    const faults: [string, () => void][] = [
      ['the response is about another chain than before', () => (ways.stray.target = side.url)],
      [
        'the response has status 307',
        () => (ways.stray.answers = { status: 307, headers: { location: main.url }, body: '' }),
      ],
      [
        'the response has more than 1 MiB',
        () => (ways.stray.answers = { status: 200, headers: {}, body: `"${'x'.repeat(1024 * 1024)}"` }),
      ],
    ];
    for (const [reason, fault] of faults) {
      fault();
      clock.nowMs += STALE_MS;
      expect(await fees()).toMatchObject([
        { chain_id: 1 },
        { chain_id: 137 },
        { error: expect.stringMatching(/^unavailable: /) },
        { chain_id: 137 },
        { network_id: STRAY, error: `unavailable: ${reason}` },
      ]);
    }
    Object.assign(ways.stray, { target: main.url, answers: undefined });
    clock.nowMs += FRESH_MS;
    expect((await fees())[4]).toMatchObject({ network_id: STRAY, chain_id: 1 });
  });

  it('4.9-05: no response, log line or metric contains a node URL or its key', async () => {
    const { text } = await p.call('GET', '/v2/blockchain/gas-fee');
    const metrics = await (await fetch(`${p.service.adminUrl}/metrics`)).text();
    const logged = lines.filter((line) => line.includes('gas fee'));
    expect(logged.length).toBeGreaterThan(0);
    const ports = Object.values(ways).map((way) => ('url' in way ? new URL(way.url).port : `${way.port}`));
    for (const shown of [text, metrics, ...lines]) {
      expect(shown).not.toContain(KEY);
      for (const port of ports) expect(shown).not.toContain(`127.0.0.1:${port}`);
    }
    expect(text).toContain(SIDE);
  });
});
