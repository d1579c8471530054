import { type Log, silentLog } from '../../../src/lib/log.ts';
import { sendBytes } from '../gateway/good-routes.ts';
import type { RawAnswer } from '../gateway/raw.ts';
import { type Portcullis, startPortcullis } from '../harness.ts';

export const CONSOLE = 'https://console.example';
export const PING = { jsonrpc: '2.0', id: 1, method: 'ping' };
export const PONG = { jsonrpc: '2.0', id: 1, result: {} };

/** An instance with a public address, one allowed origin, and what it has logged as a fault. */
export interface AgentFixture extends AsyncDisposable {
  p: Portcullis;
  /** Of the demo client, with every scope. */
  secret: string;
  faults: { fields: object; message: string }[];
  /** A request byte by byte, where fetch would not send it; a good ping but for what is given. */
  raw(headers: Record<string, string | string[] | undefined>, options?: RawOptions): Promise<RawAnswer>;
}

interface RawOptions {
  method?: string;
  target?: string;
  body?: unknown;
}

export async function agentFixture(): Promise<AgentFixture> {
  const faults: AgentFixture['faults'] = [];
  const log: Log = { ...silentLog, error: (fields, message) => void faults.push({ fields, message }) };
  const env = { PUBLIC_URL: 'https://gate.example', CORS_ORIGINS: CONSOLE };
  const p = await startPortcullis({ env, overrides: { log } });
  const secret = p.demo.client.client_secret;
  const good = { host: 'localhost', 'content-type': 'application/json', authorization: `Bearer ${secret}` };
  return {
    p,
    secret,
    faults,
    raw: (headers, { method = 'POST', target = '/v2/mcp', body = PING } = {}) => {
      const sent = { method, target, headers: { ...good, ...headers } };
      return sendBytes(p.url, method === 'POST' ? { ...sent, body: JSON.stringify(body) } : sent);
    },
    [Symbol.asyncDispose]: () => p[Symbol.asyncDispose](),
  };
}
