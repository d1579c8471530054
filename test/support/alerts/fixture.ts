import { rm } from 'node:fs/promises';
import { type Cluster, type Replica, startCluster } from '../faults/cluster.ts';
import { registerMany, tokenOf } from '../faults/faults.ts';
import { type Load, startLoad, warmUp } from '../faults/load.ts';
import { startReader } from '../faults/reader.ts';
import { type FakeNode, fakeNode } from '../gas-fee/node.ts';
import { startUpstream } from '../gateway/forwarder.ts';
import { gatewayFile } from '../gateway/gateway-file.ts';
import { type Collector, startCollector } from '../observability/collector.ts';
import { type FaultProxy, faultProxy } from '../services/fault-proxy.ts';
import { temporaryFolder } from '../services/folders.ts';
import { type SmallDisk, smallDisk } from '../start/small-disk.ts';
import { type Monitor, startMonitor } from './monitor.ts';
import { startTraffic } from './traffic.ts';

const MIB = 2 ** 20;
const SPOOL_DISK_BYTES = 64 * MIB;
const PARTITIONS = 3;
/** A part of what the machine bears. */
const REST_MS = 1_000;
/** More requests than any test sends. */
const MONTHLY_LIMIT = 1_000_000_000;

type Credentials = Cluster['demo']['client'];

/** Two gateways, a worker, their stores and all that they speak to, under load, and the Prometheus that watches them. */
export interface Fixture extends AsyncDisposable {
  cluster: Cluster;
  gateways: readonly [Replica, Replica];
  worker: Replica;
  monitor: Monitor;
  load: Load;
  token: string;
  /** A remote service: how it answers a request, and the way to it. */
  remote: { answer: RemoteAnswer; proxy: FaultProxy };
  provider: FakeNode;
  collector: Collector;
  /** The disk that the second gateway has its audit spool on. */
  spoolDisk: SmallDisk;
  gatewayFile: string;
  /** Makes a client whose requests are counted, up to a monthly limit. */
  limitedClient(monthlyLimit?: number): Promise<Credentials>;
}

type RemoteAnswer = Parameters<typeof startUpstream>[0];

const served: RemoteAnswer = (_req, res) => void res.end('far');

export async function alertFixture(): Promise<Fixture> {
  await using stack = new AsyncDisposableStack();
  const folder = await temporaryFolder();
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const remote = { answer: served, proxy: stack.use(await faultProxy()) };
  const upstream = stack.use(await startUpstream((req, res) => remote.answer(req, res)));
  remote.proxy.targetPort = Number(new URL(upstream.url).port);
  const far = { at: remote.proxy.urlOf(upstream.url), breaker: { failures: 5, open_ms: 1_000 } };
  const endpoint = { methods: ['GET'], path: '/far/{thing}', services: ['far'] };
  const file = stack.use(await gatewayFile({ far }, [endpoint]));
  const provider = stack.use(await fakeNode());
  const collector = stack.use(await startCollector());
  const spoolDisk = stack.use(await smallDisk(SPOOL_DISK_BYTES));
  const cluster = stack.use(
    await startCluster(['gateway', 'gateway', 'worker'], {
      partitions: PARTITIONS,
      env: {
        GATEWAY_CONFIG: file.path,
        GAS_RPC_URLS: `11111111-2222-4333-8444-555555555555=${provider.url}`,
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_BSP_SCHEDULE_DELAY: '500',
        WEBHOOK_SIGNING_SECRET: `whsec_${Buffer.alloc(32, 's').toString('base64')}`,
        OTEL_TRACES_SAMPLER_ARG: '0.2',
      },
      own: { 1: { env: { AUDIT_SPOOL_DIR: spoolDisk.inside }, through: spoolDisk.through } },
    }),
  );
  const [first, second, worker] = cluster.replicas;
  if (!(first && second && worker)) throw new Error('the cluster lacks a process');
  const gateways = [first, second] as const;

  async function limitedClient(monthlyLimit = MONTHLY_LIMIT): Promise<Credentials> {
    const given = ['--node', cluster.demo.node_id, '--name', 'Limited', '--grants', 'client_credentials'];
    const limits = ['--scopes', 'accounts:read', '--monthly-limit', String(monthlyLimit), '--json'];
    return JSON.parse(await cluster.command(['client', 'create', ...given, ...limits]));
  }

  await warmUp(cluster);
  const token = await tokenOf(cluster);
  const other = await tokenOf(cluster, cluster.demo.other_node.client);
  const limited = await tokenOf(cluster, await limitedClient());
  const registered = await registerMany(cluster);
  const load = startLoad({ cluster, token, registered, restMs: REST_MS });
  stack.defer(() => load.stop());
  const traffic = startTraffic({ gateways, token, other, limited, secret: cluster.demo.client.client_secret });
  stack.defer(() => traffic.stop());
  for (const { baseUrl } of gateways) {
    const reader = startReader({ baseUrls: [baseUrl], token, after: 0n });
    stack.defer(() => reader.stop());
    await endedStream(baseUrl, token);
  }
  const targets = { gateways: gateways.map(({ adminUrl }) => adminUrl), workers: [worker.adminUrl] };
  const monitor = stack.use(await startMonitor(folder, targets));
  const held = stack.move();
  return {
    ...{ cluster, gateways, worker, monitor, load, token, remote, provider, collector, spoolDisk },
    gatewayFile: file.path,
    limitedClient,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

/** A subscriber that comes and goes. */
async function endedStream(baseUrl: string, token: string): Promise<void> {
  const stream = await fetch(`${baseUrl}/graphql`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      accept: 'text/event-stream',
      'content-type': 'application/json',
    },
    body: JSON.stringify({ query: 'subscription { transactionUpdates { cursor } }' }),
  });
  await stream.body?.cancel();
}
