import type { ServerResponse } from 'node:http';

/** Sends a JSON body; as bytes, so that Node sends the headers unchanged. */
export function sendJson(res: ServerResponse, status: number, body: unknown): void {
  const bytes = Buffer.from(JSON.stringify(body), 'utf8');
  res.statusCode = status;
  res.setHeader('Content-Type', 'application/json; charset=utf-8');
  res.setHeader('Content-Length', bytes.length);
  res.end(bytes);
}

/** Sends a status without a body. */
export function sendEmpty(res: ServerResponse, status: number): void {
  res.statusCode = status;
  if (status !== 204) res.setHeader('Content-Length', 0);
  res.end();
}
