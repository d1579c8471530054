import { expect, it } from 'vitest';
import { gasPricesOf } from '../../src/domain/gas-fee/fee-history.rules.ts';

const HISTORY = {
  oldestBlock: '0x1479cd0',
  baseFeePerGas: ['0x3b9aca00', '0x3b9aca00', '0x3b9aca00', '0x2cb417800'],
  gasUsedRatio: [0.5, 0.1, 0.9],
  reward: [
    ['0x0', '0x0', '0x0'],
    ['0x5f5e100', '0x3b9aca00', '0x9502f900'],
    ['0x5f5e101', '0x3b9aca01', 'ff'.padStart(4, '0x')],
  ],
};

it('4.9-05: prices are those of the next block and the middle of recent ones, in wei without loss', () => {
  expect(gasPricesOf('0x1', HISTORY)).toEqual({
    chainId: 1,
    baseFee: '12000000000',
    priorityFee: { slow: '100000000', standard: '1000000000', fast: '255' },
    gasPrice: '13000000000',
    blockNumber: 21_470_418,
  });
  const two = { ...HISTORY, baseFeePerGas: HISTORY.baseFeePerGas.slice(1), reward: HISTORY.reward.slice(1) };
  const priorityFee = { slow: '100000000', standard: '1000000000', fast: '255' };
  expect(gasPricesOf('0x1', two)).toMatchObject({ priorityFee });
  const huge = `0x${'f'.repeat(64)}`;
  const one = { oldestBlock: '0x0', baseFeePerGas: ['0x0', huge], reward: [['0x0', '0x1', '0x2']] };
  expect(gasPricesOf('0xa', one)).toMatchObject({
    baseFee: `${BigInt(huge)}`,
    gasPrice: `${BigInt(huge) + 1n}`,
    blockNumber: 0,
  });
});

it.each<[string, unknown, unknown]>([
  ['no chain id', null, HISTORY],
  ['a chain id in decimal', '1', HISTORY],
  ['a chain id as a number', 1, HISTORY],
  ['a chain id beyond what can be counted', `0x${'f'.repeat(16)}`, HISTORY],
  ['a quantity with leading zeros', '0x01', HISTORY],
  ['no history', '0x1', null],
  ['a history as text', '0x1', 'fast'],
  ['no rewards', '0x1', { ...HISTORY, reward: undefined }],
  ['no blocks', '0x1', { ...HISTORY, reward: [], baseFeePerGas: ['0x1'] }],
  ['a reward too few', '0x1', { ...HISTORY, reward: [['0x1', '0x2'], ...HISTORY.reward.slice(1)] }],
  ['a null reward', '0x1', { ...HISTORY, reward: [null, ...HISTORY.reward.slice(1)] }],
  ['base fees without the next block', '0x1', { ...HISTORY, baseFeePerGas: HISTORY.baseFeePerGas.slice(1) }],
  ['more base fees than blocks', '0x1', { ...HISTORY, baseFeePerGas: [...HISTORY.baseFeePerGas, '0x1'] }],
  ['a negative base fee', '0x1', { ...HISTORY, baseFeePerGas: ['0x1', '0x1', '0x1', '-0x1'] }],
  [
    'a base fee of more than 256 bits',
    '0x1',
    { ...HISTORY, baseFeePerGas: ['0x1', '0x1', '0x1', `0x1${'0'.repeat(64)}`] },
  ],
  ['a block number that cannot be counted', '0x1', { ...HISTORY, oldestBlock: '0x1fffffffffffff' }],
])('4.9-05: %s is malformed', (_name, chainId, history) => {
  expect(gasPricesOf(chainId, history)).toBeUndefined();
});
