import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { listening } from '../gateway/forwarder.ts';

/** A way to a node on which it is counted what it is asked, and that can lead to another one. */
export interface RpcProxy extends AsyncDisposable {
  url: string;
  /** The methods that were called. */
  asked: string[];
  target: string;
  /** Answers itself, in the place of the node. */
  answers: { status: number; headers: Record<string, string>; body: string } | undefined;
}

/** Starts such a way; nothing passes before a call is whole. */
export async function rpcProxy(target: string): Promise<RpcProxy> {
  const server = createServer(async (req, res) => {
    const body = await text(req);
    proxy.asked.push(JSON.parse(body).method);
    if (proxy.answers) return void res.writeHead(proxy.answers.status, proxy.answers.headers).end(proxy.answers.body);
    const answer = await fetch(proxy.target, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    res.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
  });
  const proxy: RpcProxy = {
    url: await listening(server),
    asked: [],
    target,
    answers: undefined,
    async [Symbol.asyncDispose]() {
      server.close(() => undefined).closeAllConnections();
    },
  };
  return proxy;
}
