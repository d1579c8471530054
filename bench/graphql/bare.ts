import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { shortestRecords } from '../lib/shortest-record.ts';
import { edgesOf, PAGE } from './documents.ts';
import { peerOptions } from './peer.ts';
import { openRows } from './rows.ts';

/**
 * Run as a process of its own: what one writes by hand where there is one question only. It reads no document: two
 * prepared statements, and the answer as one text; with a file for records, a record of each request as well.
 */
const options = peerOptions();
const rows = openRows(options);

async function answer(): Promise<object> {
  const accounts = await rows.accounts(PAGE.accounts);
  const wallets = await rows.wallets(
    accounts.map(({ id }) => id),
    PAGE.wallets,
  );
  const nodes = accounts.map(({ id, name, status }, index) => {
    const own = (wallets[index] ?? []).map(({ id: walletId, chain }) => ({ id: walletId, chain }));
    return { id, name, status, wallets: edgesOf(own) };
  });
  return { data: { accounts: edgesOf(nodes) } };
}

const keep = options.records && shortestRecords(options.records);

createServer(async (req, res) => {
  const startedTick = performance.now();
  const requestBody = keep ? await text(req) : '';
  req.resume();
  const responseBody = JSON.stringify(req.url === '/health' ? {} : await answer());
  res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(responseBody) });
  if (keep) keep({ req, startedTick, requestBody, responseBody }, () => res.end(responseBody));
  else res.end(responseBody);
}).listen(options.port, '127.0.0.1');
