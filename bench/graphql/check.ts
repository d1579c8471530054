import { request } from 'undici';
import { type Contender, requestOf } from './contenders.ts';
import { PAGE } from './documents.ts';

interface Edges<Node> {
  edges: { node: Node }[];
}

interface Answer {
  data?: { accounts: Edges<{ wallets: Edges<{ chain: string | { name: string } }> }> };
}

/** @throws unless all give the same accounts with the same wallets, as many as were asked for. */
export async function assertSameData(contenders: readonly Contender[]): Promise<void> {
  const answers: string[] = [];
  for (const contender of contenders) answers.push(await dataOf(contender));
  const [expected] = answers;
  for (const [index, answer] of answers.entries()) {
    if (answer === expected) continue;
    throw new Error(`${contenders[index]?.title} answers otherwise:\n${answer}\n${expected}`);
  }
}

/** Its answer, a chain by its name, which PostGraphile has as an object. */
async function dataOf(contender: Contender): Promise<string> {
  const { url, ...options } = requestOf(contender);
  const { statusCode, body } = await request(url, options);
  const text = await body.text();
  const { data }: Answer = statusCode === 200 ? JSON.parse(text) : {};
  const wallets = data?.accounts.edges.map(({ node }) => node.wallets.edges) ?? [];
  if (wallets.length !== PAGE.accounts || wallets.some(({ length }) => length < 2 || length > 5))
    throw new Error(`${contender.title} answered ${statusCode}: ${text}`);
  for (const { node } of wallets.flat()) if (typeof node.chain !== 'string') node.chain = node.chain.name;
  return JSON.stringify(data);
}
