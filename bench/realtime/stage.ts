import { emptyFolder, onAllStores, type Stores, seedWorld } from '../lib/world.ts';
import { type Contender, startBare, startPortcullis, startReplica, startShortest, startYoga } from './contenders.ts';

/** All contenders, running. */
export interface Stage {
  bare: Contender;
  /** Those that are measured against it. */
  contenders: Contender[];
  /** The product on servers, and the bare server behind the same brokers. */
  behindKafka: { product: Contender; bare: Contender } | undefined;
}

/** Calls `use` while the product runs on each of the stores, beside its peers; with `titles` only with those that have one. */
export async function onStage(
  kinds: readonly Stores[],
  titles: readonly string[] | undefined,
  use: (stage: Stage) => Promise<void>,
): Promise<void> {
  await using folder = await emptyFolder();
  await onAllStores(kinds, async (worlds) => {
    await using servers = new AsyncDisposableStack();
    const kept = <Started extends Pick<Contender, 'server'>>(started: Started): Started => {
      servers.defer(() => started.server.stop());
      return started;
    };
    const bare = kept(await startBare(folder.path));
    const yoga = await startYoga(folder.path);
    kept(yoga.ws);
    const stage: Stage = { bare, contenders: [], behindKafka: undefined };
    for (const world of worlds) {
      await seedWorld(world);
      const shortest = kept(await startShortest(world));
      const product = await startPortcullis(world);
      kept(product.sse);
      stage.contenders.push(product.sse, product.ws, shortest);
      if (world.stores === 'embedded') continue;
      stage.contenders.push(kept(await startReplica(world, product.sse)));
      stage.behindKafka = { product: product.sse, bare: kept(await startBare(folder.path, world)) };
    }
    stage.contenders.push(yoga.ws, yoga.sse);
    const isMeant = ({ title }: Contender) => titles?.some((text) => title.includes(text)) ?? true;
    await use({ ...stage, contenders: stage.contenders.filter(isMeant) });
  });
}
