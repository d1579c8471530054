import type { Context } from './context.ts';
import { EthereumNode } from './gas-fee/ethereum-node.ts';
import { GasFees } from './gas-fee/gas-fees.service.ts';

/** What asks the configured nodes what gas costs. */
export function openGasFees(
  { config, nowMs, log }: Pick<Context, 'config' | 'nowMs' | 'log'>,
  stack: AsyncDisposableStack,
): GasFees {
  const sources = new Map(Array.from(config.gasNodes, ([networkId, url]) => [networkId, new EthereumNode(url)]));
  stack.defer(async () => {
    await Promise.all(sources.values().map((node) => node.close()));
  });
  return new GasFees({ sources, nowMs, log });
}
