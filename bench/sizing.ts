import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import { EXAMPLES, sizeOf } from '../scripts/sizing-page.ts';
import { portcullisStarts, requestOf, startUpstream } from './gateway/contenders.ts';
import { cpuMs, untilIdle } from './lib/process-stats.ts';
import { readDemoFile } from './lib/product.ts';
import { print } from './lib/report.ts';
import { cpuOfLoad } from './lib/round.ts';
import { emptyFolder, onEachStores } from './lib/world.ts';

const SECONDS = 30;
const WARM_UP = 20_000;

/** Sends requests at a rate for some seconds, each on time whether or not those before it were answered. */
async function atRate(rate: number, seconds: number, send: () => Promise<number>): Promise<void> {
  const begun = performance.now();
  const sent: Promise<number>[] = [];
  for (let count = 0; count < rate * seconds; count += 1) {
    const wait = begun + (count * 1_000) / rate - performance.now();
    if (wait > 1) await delay(wait);
    sent.push(send());
  }
  const wrong = (await Promise.all(sent)).filter((status) => status !== 200);
  if (wrong.length > 0) throw new Error(`${wrong.length} of ${sent.length} were answered ${[...new Set(wrong)]}`);
}

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
  const status = async (asked: Parameters<Pool['request']>[0]) => {
    const { statusCode, body } = await pool.request(asked);
    await body.dump();
    return statusCode;
  };
  const grant = JSON.stringify({ grant_type: 'client_credentials', ...readDemoFile(world.dataDir).client });
  const ask = {
    proxied: () => status({ method: 'GET', path: `${pathname}${search}`, headers }),
    token: () =>
      status({ method: 'POST', path: '/v2/oauth/token', headers: { 'content-type': 'application/json' }, body: grant }),
  };
  const run = (seconds: number) =>
    Promise.all([
      atRate(EXAMPLES.small.proxied, seconds, ask.proxied),
      atRate(EXAMPLES.small.tokens, seconds, ask.token),
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
