import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Server as NetServer } from 'node:net';
import { gatewayChain } from '../../../src/gateway/chain.ts';
import { type GatewayConfig, parseGatewayConfig } from '../../../src/gateway/endpoints/gateway-config.ts';
import type { Upstream } from '../../../src/gateway/endpoints/upstream.ts';
import type { Exchange } from '../../../src/gateway/exchange/exchange.ts';
import { compileTrust, cors } from '../../../src/gateway/exchange/request-head.ts';
import { type ConnectionTimes, Gateway, ingress } from '../../../src/gateway/gateway.ts';
import { UpstreamCalls } from '../../../src/gateway/proxy/upstream-call.ts';
import { Upstreams } from '../../../src/gateway/proxy/upstreams.ts';
import { PathTable, Services } from '../../../src/gateway/routing.ts';
import { type Log, silentLog } from '../../../src/lib/log.ts';
import { MemoryAccounts } from '../../../src/platform/held-memory.ts';
import { ENDLESS } from '../harness/endless.ts';

/** What an upstream saw of a request. */
export interface Seen {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  rawHeaders: string[];
  body: string;
  /** The connection ended before the body, or before the answer, did. */
  aborted: boolean;
}

/** An upstream that counts what it saw. */
export interface TestUpstream extends AsyncDisposable {
  url: string;
  seen: Seen[];
  server: Server;
  /** How many connections were opened to it. */
  connections: number;
}

/** Starts an upstream; requests are in `seen` as they come, their bodies as far as they were read. */
export async function startUpstream(answer: RequestListener): Promise<TestUpstream> {
  const seen: Seen[] = [];
  const server = createServer((req, res) => {
    seen.push(watch(req, res));
    answer(req, res);
  });
  const upstream: TestUpstream = {
    url: await listening(server),
    seen,
    server,
    connections: 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  server.on('connection', () => {
    upstream.connections += 1;
  });
  return upstream;
}

/** The URL of a server, once it listens on a free port. */
export async function listening(server: NetServer): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function watch(req: IncomingMessage, res: ServerResponse): Seen {
  const { method = '', url = '', headers, rawHeaders } = req;
  const seen: Seen = { method, url, headers, rawHeaders, body: '', aborted: false };
  req.on('data', (chunk: Buffer) => {
    seen.body += chunk.toString('latin1');
  });
  res.on('close', () => {
    seen.aborted = !res.writableFinished;
  });
  return seen;
}

/** A gateway whose endpoints are all public and remote, without the rest of the product. */
export interface Forwarder extends AsyncDisposable {
  url: string;
  server: Server;
  upstreams: Upstreams;
  memory: MemoryAccounts;
  upstream(name: string): Upstream;
  /** Puts another table in force. */
  use(table: ForwarderTable): void;
  /** The exchanges that have ended, each once. */
  ended: { aborted: boolean; status: number; exchange(): Exchange }[];
}

interface ForwarderTable {
  /** As in `gateway.yaml`. */
  services: Record<string, object | string>;
  /** As in `gateway.yaml`, public; by default every method of every path, of the first service. */
  endpoints?: object[];
  binding?: string[];
}

interface ForwarderOptions extends ForwarderTable {
  /** The client guards; with them, endpoints are protected and every token is accepted. */
  guard?: () => Promise<void>;
  /** The client of a token; by default there is none. */
  clientOf?: (token: string) => string;
  /** The tenant of a token; by default that of all. */
  nodeOf?: (token: string) => string;
  nowMs?: () => number;
  log?: Log;
  trustProxy?: string[];
  publicUrl?: string;
  times?: ConnectionTimes;
  /** Answers the requests to local services. */
  local?: (exchange: Exchange) => void;
}

const nameService = ({ res, state }: Exchange) => void res.end(`local ${state.service}`);

const PROTECTED = { visibility: 'protected', tokens: ['user'] };
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

function configOf({ services, endpoints, binding, guard }: ForwarderOptions): GatewayConfig {
  const [first = ''] = Object.keys(services);
  const all = endpoints ?? [{ methods: METHODS, path: '**', services: [first] }];
  return parseGatewayConfig(
    'gateway.yaml',
    JSON.stringify({
      services,
      ...(binding ? { binding } : {}),
      webhook_alias: { deprecated_at: '2026-11-01T00:00:00Z', sunset: '2027-11-01T00:00:00Z' },
      endpoints: all.map((endpoint) => ({ ...(guard ? PROTECTED : { visibility: 'public' }), ...endpoint })),
    }),
  );
}

/** Accepts every token, as one of a client. */
const accepting = ({ clientOf, nodeOf = () => 'node' }: ForwarderOptions) => ({
  checkSignature: async (token: string) => token,
  principalOf: (token: string) => ({ nodeId: nodeOf(token) }),
  checkClaims: async (token: string) => ({
    nodeId: nodeOf(token),
    clientId: clientOf?.(token),
    permissions: new Set(),
  }),
  checkSession: async () => undefined,
});

/** Starts a gateway on remote services. */
export async function startForwarder(options: ForwarderOptions): Promise<Forwarder> {
  const {
    nowMs = Date.now,
    log = silentLog,
    trustProxy = ['loopback'],
    times,
    local = nameService,
    publicUrl = 'http://gateway.invalid',
  } = options;
  const config = configOf(options);
  const upstreams = new Upstreams(config, {
    log,
    nowMs,
    watch: ENDLESS,
    publicUrl: { value: publicUrl },
    calls: new UpstreamCalls(),
  });
  const ended: Forwarder['ended'] = [];
  const onEnd = (exchange: Exchange, aborted: boolean, kept: () => void) => {
    ended.push({ aborted, status: exchange.res.statusCode, exchange: () => exchange });
    setImmediate(kept);
  };
  const never = () => {
    throw new Error('public endpoints of remote services need none of it');
  };
  const chainOf = (table: GatewayConfig) =>
    gatewayChain({
      aliases: new Map(),
      table: new PathTable(table.endpoints),
      services: new Services(table, upstreams),
      tokens: (options.guard ? accepting(options) : { checkSignature: never }) as never,
      guards: {
        check: async () => {
          await options.guard?.();
          return { headers: [] };
        },
      },
      local: { routes: new PathTable([]), handle: local },
      remote: upstreams,
      onEnd,
      nowMs,
    });
  const memory = new MemoryAccounts();
  const gateway = new Gateway({
    memory,
    chain: chainOf(config),
    trusts: compileTrust(trustProxy),
    cors: cors(['*']),
    isAuditFull: () => false,
    onEnd,
    withContext: (_exchange, run) => run(),
    onClosed: () => undefined,
    onUnparsed: (_unparsed, kept) => kept(),
    log,
  });
  const server = ingress(gateway, times);
  return {
    url: await listening(server),
    server,
    upstreams,
    memory,
    upstream: (name) => upstreams.of(name) ?? never(),
    ended,
    use(table) {
      const next = configOf(table);
      upstreams.replace(next);
      gateway.use(chainOf(next));
    },
    async [Symbol.asyncDispose]() {
      upstreams.stopStreams();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await upstreams.close();
    },
  };
}
