import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gasPricesOf, PERCENTILES } from '../../src/features/gas-fee/fee-history.rules.ts';
import { RpcProvider } from '../../src/features/gas-fee/rpc-provider.service.ts';
import { call, startAnvil } from '../support/gas-fee/anvil.ts';
import { describeAnvil } from '../support/gas-fee/describe-anvil.ts';
import { fakeNode } from '../support/gas-fee/node.ts';

const QUANTITY = expect.stringMatching(/^0x(0|[1-9a-f][0-9a-f]*)$/);
const BLOCKS = '0x5';

/** What a node does that gas fees are asked of, be it real or one that a test makes up. */
function nodeContract(name: string, start: () => Promise<AsyncDisposable & { url: string }>): void {
  describe(`${name} as an Ethereum node`, () => {
    let node: AsyncDisposable & { url: string };
    beforeAll(async () => {
      node = await start();
    });
    afterAll(() => node[Symbol.asyncDispose]());

    it('4.9-05 D8-03: eth_chainId returns a quantity', async () => {
      expect(await call(node.url, 'eth_chainId', [])).toEqual(QUANTITY);
    });

    it('4.9-05 D8-03: eth_feeHistory returns at most the requested blocks, one more base fee, and the rewards of each block', async () => {
      const history = (await call(node.url, 'eth_feeHistory', [BLOCKS, 'latest', PERCENTILES])) as {
        oldestBlock: string;
        baseFeePerGas: string[];
        gasUsedRatio: number[];
        reward: string[][];
      };
      const blocks = history.reward.length;
      expect(blocks).toBeGreaterThan(0);
      expect(blocks).toBeLessThanOrEqual(Number(BLOCKS));
      expect(history).toMatchObject({
        oldestBlock: QUANTITY,
        baseFeePerGas: Array.from({ length: blocks + 1 }, () => QUANTITY),
        gasUsedRatio: Array.from({ length: blocks }, () => expect.any(Number)),
        reward: Array.from({ length: blocks }, () => PERCENTILES.map(() => QUANTITY)),
      });
    });

    it('4.9-05 D8-03: an unknown method is an error, not a result', async () => {
      await expect(call(node.url, 'eth_nope', [])).rejects.toThrow('not found');
    });

    it('4.9-05 D8-03: the prices are computed from its two responses', async () => {
      const asked = new RpcProvider(node.url);
      const answers = await Promise.all([
        call(node.url, 'eth_chainId', []),
        call(node.url, 'eth_feeHistory', [BLOCKS, 'latest', PERCENTILES]),
      ]);
      expect(await asked.gasPrices()).toEqual(gasPricesOf(...answers) ?? expect.fail('they are well formed'));
      await asked.close();
    });
  });
}

nodeContract('the fake node', () => fakeNode());

describeAnvil('Anvil', () => {
  nodeContract('Anvil', () => startAnvil('--chain-id', '31337'));
  nodeContract('Anvil with automatic mining and a large chain id', () =>
    startAnvil('--chain-id', '4294967297', '--block-time', '1'),
  );
});
