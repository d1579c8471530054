import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listening } from '../gateway/forwarder.ts';

const HISTORY = {
  oldestBlock: '0x10',
  baseFeePerGas: ['0x3b9aca00', '0x77359400'],
  gasUsedRatio: [0.5],
  reward: [['0x1', '0x2', '0x3']],
};

/** What a fake node says to each method. */
export type Says = (method: string) => unknown;

export interface FakeNode extends AsyncDisposable {
  url: string;
  asked: { method: string; params: unknown[]; authorization: string | undefined; target: string }[];
  /** Replaces what it says. */
  says: Says;
  /** Takes the whole answer over. */
  answers: ((req: IncomingMessage, res: ServerResponse) => void) | undefined;
}

export const honest: Says = (method) => ({ eth_chainId: '0x1', eth_feeHistory: HISTORY })[method];

/** A node that speaks JSON-RPC over HTTP and says what a test wants. */
export async function fakeNode(says: Says = honest): Promise<FakeNode> {
  const server = createServer(async (req, res) => {
    if (node.answers) return node.answers(req, res);
    const { id, method, params } = JSON.parse((await req.toArray()).join(''));
    node.asked.push({ method, params, authorization: req.headers.authorization, target: req.url ?? '' });
    res.setHeader('content-type', 'application/json');
    const result = node.says(method);
    const said = result === undefined ? { error: { code: -32_601, message: 'Method not found' } } : { result };
    res.end(JSON.stringify({ jsonrpc: '2.0', id, ...said }));
  });
  const node: FakeNode = {
    url: await listening(server),
    asked: [],
    says,
    answers: undefined,
    async [Symbol.asyncDispose]() {
      server.close(() => undefined).closeAllConnections();
    },
  };
  return node;
}
