import type { ServerResponse } from 'node:http';

/** Sends an answer of Yoga whose body is short; nothing where the client has gone. */
export async function sendResponse(answer: Response, res: ServerResponse): Promise<void> {
  const body = await answer.text();
  if (res.destroyed || res.writableEnded) return;
  res.setHeaders(answer.headers);
  res.writeHead(answer.status);
  res.end(body);
}
