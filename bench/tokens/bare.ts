import { timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { shortestRecords } from '../lib/shortest-record.ts';
import { type PeerOptions, peerOptions } from './peer.ts';
import { LIFETIME_SECONDS, signer } from './sign.ts';

const MASKED = JSON.stringify({ client_secret: '***', access_token: '***', refresh_token: '***' });

/**
 * Run as a process of its own: the least that gives the documented answer. It reads the JSON body, compares the secret
 * and signs two tokens; no gateway, no guards, no audit (or a record of each request), no store.
 */
async function serve(options: PeerOptions): Promise<void> {
  const sign = await signer(options);
  const keep = options.records && shortestRecords(options.records);
  const expected = Buffer.from(options.clientSecret, 'utf8');

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    if (req.method !== 'POST') return send(res, 200, {});
    const startedTick = performance.now();
    const requestBody = await textOf(req);
    const body = JSON.parse(requestBody) as Record<string, string>;
    const secret = Buffer.from(body.client_secret ?? '', 'utf8');
    const isKnown = secret.length === expected.length && timingSafeEqual(secret, expected);
    if (!isKnown || body.client_id !== options.clientId || body.grant_type !== 'client_credentials') {
      return send(res, 401, { error: 'invalid_request' });
    }
    const nowSeconds = Math.floor(Date.now() / 1000);
    const [access, refresh] = await Promise.all([sign('api', nowSeconds), sign('refresh', nowSeconds)]);
    const given = {
      access_token: access,
      refresh_token: refresh,
      expires_in: LIFETIME_SECONDS,
      token_type: 'Bearer',
      scope: options.scopes.join(' '),
      created_at: nowSeconds,
    };
    const end = () => send(res, 200, given);
    // Both bodies hold secrets, which a record does not show.
    if (keep) keep({ req, startedTick, requestBody: MASKED, responseBody: MASKED }, end);
    else end();
  }

  createServer((req, res) => void answer(req, res)).listen(options.port, '127.0.0.1');
}

function textOf(req: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    req.setEncoding('utf8');
    req.on('data', (chunk: string) => {
      text += chunk;
    });
    req.on('end', () => resolve(text));
    req.on('error', reject);
  });
}

function send(res: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body);
  const headers = {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'content-length': Buffer.byteLength(text),
  };
  res.writeHead(status, headers).end(text);
}

await serve(peerOptions());
