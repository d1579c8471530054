import { startAnvil } from './anvil.ts';
import { describeAnvil } from './describe-anvil.ts';
import { nodeContract } from './node.contract.ts';
import { fakeNode } from './node.ts';

nodeContract('the one that tests make up', () => fakeNode());

describeAnvil('with Anvil', () => {
  nodeContract('Anvil', () => startAnvil('--chain-id', '31337'));
  nodeContract('Anvil that mines, of a large chain id,', () =>
    startAnvil('--chain-id', '4294967297', '--block-time', '1'),
  );
});
