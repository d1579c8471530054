import { startProduct } from '../lib/product.ts';
import { tell } from '../lib/report.ts';
import { deleteTopics } from '../lib/topics.ts';
import { onAllStores } from '../lib/world.ts';
import type { RunRound, Scene } from './scenes.ts';

/** How one of the two is started beside what the scene says. */
export interface Variant {
  nodeArgs?: readonly string[];
  env?: Record<string, string>;
  main?: string;
}

/** Microseconds of CPU a request of both, in one pair of rounds. */
export interface Pair {
  own: number;
  other: number;
}

/** Rounds of two variants of the product in turn, each on a world of its own; which comes first alternates. */
export async function measurePairs(
  { requests, prepare, ask }: Scene,
  variants: { own: Variant; other: Variant },
  pairs: number,
): Promise<Pair[]> {
  const results: Pair[] = [];
  await onAllStores(['servers', 'servers'], async (worlds) => {
    await using open = new AsyncDisposableStack();
    const rounds: RunRound[] = [];
    for (const [index, variant] of [variants.own, variants.other].entries()) {
      const world = worlds[index];
      if (!world) throw new Error('there is a world for each');
      open.defer(() => deleteTopics(world));
      const options = await prepare(world);
      const start = () => startProduct({ ...options, ...variant, env: { ...options.env, ...variant.env } });
      const server = await start();
      open.defer(() => server.stop());
      rounds.push(await ask(server, world, open, start));
    }
    const [own, other] = rounds;
    if (!own || !other) throw new Error('both run');
    for (const warmUp of [own, other, own, other]) await warmUp(requests);
    while (results.length < pairs) {
      tell(`pair ${results.length + 1} of ${pairs} …`);
      const isFirst = results.length % 2 === 0;
      const first = await (isFirst ? own : other)(requests);
      const second = await (isFirst ? other : own)(requests);
      results.push(isFirst ? { own: first, other: second } : { own: second, other: first });
    }
  });
  return results;
}
