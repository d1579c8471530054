import type { Effort } from '../lib/pairs.ts';
import { profileProduct, profileServer } from '../lib/profile.ts';
import type { Table } from '../lib/report.ts';
import { databasesOf, emptyFolder, seedWorld, type World } from '../lib/world.ts';
import { type PeerName, productRequest, signing, startPeer } from './contenders.ts';
import { runRound } from './measure.ts';

const BESIDE: readonly PeerName[] = ['oidc-provider-recorded', 'bare-hmac-recorded'];

/** Where the product spends its time on client_credentials, once it is warm, and on servers those with a record beside it. */
export async function profile(world: World, { requests, warmUp }: Effort): Promise<Table[]> {
  await using folder = await emptyFolder();
  await seedWorld(world, 'limits');
  const tables = await profileProduct({
    product: signing(world),
    warmUp,
    requests,
    prepare: async (server) => {
      const request = productRequest(server, world);
      return (count) => runRound({ server, request }, count);
    },
  });
  for (const databaseUrl of databasesOf([world])) {
    for (const name of BESIDE) {
      const peer = await profileServer({
        title: name,
        start: () => startPeer(name, folder.path, databaseUrl),
        warmUp,
        requests,
        prepare: async (contender) => (count) => runRound(contender, count),
      });
      tables.push(...peer);
    }
  }
  return tables;
}
