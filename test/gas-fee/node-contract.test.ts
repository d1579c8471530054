import { startAnvil } from '../support/gas-fee/anvil.ts';
import { describeAnvil } from '../support/gas-fee/describe-anvil.ts';
import { fakeNode } from '../support/gas-fee/node.ts';
import { nodeContract } from './node.contract.ts';

nodeContract('the one that tests make up', () => fakeNode());

describeAnvil('with Anvil', () => {
  nodeContract('Anvil', () => startAnvil('--chain-id', '31337'));
  nodeContract('Anvil that mines, of a large chain id,', () =>
    startAnvil('--chain-id', '4294967297', '--block-time', '1'),
  );
});
