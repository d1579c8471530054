import { Pool } from 'undici';
import { EXAMPLES, sizeOf } from '../scripts/sizing-page.ts';
import { portcullisStarts, requestOf, startUpstream } from './gateway/contenders.ts';
import { atRate } from './lib/at-rate.ts';
import { cpuMs, untilIdle } from './lib/process-stats.ts';
import { readDemoFile } from './lib/product.ts';
import { print } from './lib/report.ts';
import { cpuOfLoad } from './lib/round.ts';
import { emptyFolder, onEachStores } from './lib/world.ts';

const SECONDS = 30;
const WARM_UP = 20_000;

// The small example of docs/operations/sizing.md, on a gateway in production: predicted and measured CPU.
await using folder = await emptyFolder();
await onEachStores(['servers'], async (world) => {
  const upstream = await startUpstream(folder.path);
  const [first, production] = portcullisStarts(world, upstream.url);
  if (!first || !production) throw new Error('there is no gateway in production');
  // The first one seeds.
  await (await first()).server.stop();
  const { server, token = '' } = await production();
  const { url, headers } = requestOf(server, token);
  const { origin, pathname, search } = new URL(url);
  const pool = new Pool(origin, { connections: 32 });
  const send = async (asked: Parameters<Pool['request']>[0]) => {
    const { statusCode, body } = await pool.request(asked);
    await body.dump();
    if (statusCode !== 200) throw new Error(`answered ${statusCode}`);
  };
  const grant = JSON.stringify({ grant_type: 'client_credentials', ...readDemoFile(world.dataDir).client });
  const ask = {
    proxied: () => send({ method: 'GET', path: `${pathname}${search}`, headers }),
    token: () =>
      send({ method: 'POST', path: '/v2/oauth/token', headers: { 'content-type': 'application/json' }, body: grant }),
  };
  const run = (seconds: number) =>
    Promise.all([
      atRate(EXAMPLES.small.proxied, EXAMPLES.small.proxied * seconds, ask.proxied),
      atRate(EXAMPLES.small.tokens, EXAMPLES.small.tokens * seconds, ask.token),
    ]);
  // As for docs/measured.md.
  await cpuOfLoad(server, { ...requestOf(server, token), connections: 32, requests: WARM_UP });
  await untilIdle(server.pid);
  const before = cpuMs(server.pid);
  await run(SECONDS);
  const measured = (cpuMs(server.pid) - before) / SECONDS;
  const { gatewayMs, restMs } = sizeOf(EXAMPLES.small);
  print({
    head: ['the small example', 'predicted', 'measured'],
    rows: [['CPU of the gateway, ms a second', (gatewayMs + restMs).toFixed(0), measured.toFixed(0)]],
  });
  await pool.close();
  await server.stop();
  await upstream.stop();
});
