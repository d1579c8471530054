import { expect, it } from 'vitest';
import { gasPricesOf, lacksBaseFees, singlePriceOf } from '../../src/features/gas-fee/fee-history.rules.ts';

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

it('4.9-05: prices use the next base fee and the median of recent blocks, in wei without loss', () => {
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
  ['a chain id beyond the safe integers', `0x${'f'.repeat(16)}`, HISTORY],
  ['a quantity with leading zeros', '0x01', HISTORY],
  ['no history', '0x1', null],
  ['a history as text', '0x1', 'fast'],
  ['rewards that are not a list', '0x1', { ...HISTORY, reward: {} }],
  ['no blocks', '0x1', { ...HISTORY, reward: [], baseFeePerGas: ['0x1'] }],
  ['one reward missing', '0x1', { ...HISTORY, reward: [['0x1', '0x2'], ...HISTORY.reward.slice(1)] }],
  ['a reward with one null', '0x1', { ...HISTORY, reward: [['0x1', null, '0x2'], ...HISTORY.reward.slice(1)] }],
  ['rewards of fewer blocks', '0x1', { ...HISTORY, reward: HISTORY.reward.slice(1) }],
  ['no base fees', '0x1', { ...HISTORY, baseFeePerGas: [] }],
  ['base fees without the next block', '0x1', { ...HISTORY, baseFeePerGas: HISTORY.baseFeePerGas.slice(1) }],
  ['more base fees than blocks', '0x1', { ...HISTORY, baseFeePerGas: [...HISTORY.baseFeePerGas, '0x1'] }],
  ['a negative base fee', '0x1', { ...HISTORY, baseFeePerGas: ['0x1', '0x1', '0x1', '-0x1'] }],
  [
    'a base fee of more than 256 bits',
    '0x1',
    { ...HISTORY, baseFeePerGas: ['0x1', '0x1', '0x1', `0x1${'0'.repeat(64)}`] },
  ],
  ['a block number beyond the safe integers', '0x1', { ...HISTORY, oldestBlock: '0x1fffffffffffff' }],
])('4.9-05: a response with %s is malformed', (_name, chainId, history) => {
  expect(gasPricesOf(chainId, history)).toBeUndefined();
});

it.each<[string, object]>([
  ['absent', { reward: undefined }],
  ['null', { reward: null }],
  ['an empty list', { reward: [] }],
  ['an empty list for each block', { reward: [[], [], []] }],
  ['null for each block', { reward: [null, null, null] }],
  ['null for each percentile', { reward: [[null, null, null], [], null] }],
])('4.9-05 D8-03: without rewards (%s) the base fee is returned without priority fees', (_name, rewards) => {
  expect(gasPricesOf('0x1', { ...HISTORY, ...rewards })).toEqual({
    chainId: 1,
    baseFee: '12000000000',
    priorityFee: null,
    gasPrice: '12000000000',
    blockNumber: 21_470_418,
  });
});

it.each([[null], [[]], [[null, null, null]]])(
  '4.9-05 D8-03: a block with the reward %j does not change the priority fees',
  (fees) => {
    const [, second, third] = HISTORY.reward;
    expect(gasPricesOf('0x1', { ...HISTORY, reward: [fees, second, third] })).toMatchObject({
      priorityFee: { slow: '100000000', standard: '1000000000', fast: '255' },
      gasPrice: '13000000000',
      blockNumber: 21_470_418,
    });
  },
);

it('4.9-05 D8-03: only a history without any base fee means a chain without base fees', () => {
  const none = [null, undefined, {}, { baseFeePerGas: null }, { baseFeePerGas: [] }, { baseFeePerGas: [null, null] }];
  for (const history of none) expect([history, lacksBaseFees(history)]).toEqual([history, true]);
  for (const history of [HISTORY, { baseFeePerGas: ['0x0'] }, { baseFeePerGas: 'x' }, { baseFeePerGas: [null, '0x1'] }])
    expect([history, lacksBaseFees(history)]).toEqual([history, false]);
});

it('4.9-05 D8-03: the price of a chain without base fees is its eth_gasPrice', () => {
  expect(singlePriceOf('0x38', '0xb2d05e00', '0x10')).toEqual({
    chainId: 56,
    baseFee: null,
    priorityFee: null,
    gasPrice: '3000000000',
    blockNumber: 16,
  });
  const malformed = [
    ['0x38', null, '0x10'],
    ['0x38', '3', '0x10'],
    ['0x38', '0x3', null],
    [null, '0x3', '0x10'],
  ];
  for (const [chainId, price, block] of malformed) expect(singlePriceOf(chainId, price, block)).toBeUndefined();
});
