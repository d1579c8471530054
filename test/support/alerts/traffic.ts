import type { Replica } from '../faults/cluster.ts';
import { callOf } from '../mcp/agents.ts';

const EVERY_MS = 500;
const ANSWER_TIMEOUT_MS = 9_000;

interface TrafficOptions {
  gateways: readonly Replica[];
  token: string;
  /** A token of another client: the circuit of a remote service opens for what two clients meet. */
  other: string;
  /** A token of a client whose requests are counted. */
  limited: string;
  /** The secret of a client, which is what agents show. */
  secret: string;
}

/** Reads from each gateway what it has to read, twice a second and whatever has become of the requests before. */
export function startTraffic({ gateways, token, other, limited, secret }: TrafficOptions): { stop(): Promise<void> } {
  const json = { 'content-type': 'application/json' };
  const bearer = (value: string) => ({ authorization: `Bearer ${value}` });
  const query = '{ accounts(first: 1) { edges { node { id } } } }';
  const requests: [path: string, init: RequestInit][] = [
    ['/v1/accounts?limit=1', { headers: bearer(limited) }],
    ['/graphql', { method: 'POST', headers: { ...json, ...bearer(token) }, body: JSON.stringify({ query }) }],
    [
      '/v2/mcp',
      {
        method: 'POST',
        headers: { ...json, ...bearer(secret), accept: 'application/json, text/event-stream' },
        body: JSON.stringify(callOf('list_accounts')),
      },
    ],
    ['/far/thing', { headers: bearer(token) }],
    ['/far/thing', { headers: bearer(other) }],
    ['/v2/blockchain/gas-fee', {}],
  ];
  const going = new Set<Promise<unknown>>();
  const timer = setInterval(() => {
    for (const { baseUrl } of gateways) {
      for (const [path, init] of requests) {
        const asked = attempt(`${baseUrl}${path}`, init).finally(() => going.delete(asked));
        going.add(asked);
      }
    }
  }, EVERY_MS);
  return {
    async stop() {
      clearInterval(timer);
      await Promise.all(going);
    },
  };
}

/** Sends a request, and reads the answer where there is one; gives its status. */
export async function attempt(url: string, init: RequestInit): Promise<number | undefined> {
  try {
    const response = await fetch(url, { ...init, signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return undefined;
  }
}
