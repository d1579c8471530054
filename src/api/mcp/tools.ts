import { z } from 'zod';
import { uuid } from './kit/list-tools.ts';
import { defineTool, type Tool } from './kit/tool.ts';
import { accountTools } from './tools/accounts.tools.ts';
import { transactionTools } from './tools/transactions.tools.ts';
import { userTools } from './tools/users.tools.ts';
import { walletRuleTools } from './tools/wallet-rules.tools.ts';
import { walletTools } from './tools/wallets.tools.ts';

const getAccess = defineTool({
  name: 'get_access',
  title: 'Who am I',
  description:
    'Returns the tenant (node) that all tools work on, the caller and its scopes. Call it first if you are unsure what you may do, or after the error forbidden.',
  input: z.object({}),
  output: z.strictObject({
    node_id: uuid(),
    subject: z.string().meta({ description: 'The client or supervisor that calls.' }),
    client_id: z.string().nullable(),
    client_name: z.string().nullable(),
    scopes: z.array(z.string()).meta({ description: 'Such as accounts:read.' }),
  }),
  run: async (_input, { caller: { nodeId, subject, clientId = null, clientName = null, permissions } }) => {
    return { node_id: nodeId, subject, client_id: clientId, client_name: clientName, scopes: [...permissions] };
  },
});

/** The tools by name, in the order in which they are listed: few enough that a model can read them with every task. */
export const TOOLS: ReadonlyMap<string, Tool> = new Map(
  [getAccess, ...accountTools, ...walletTools, ...walletRuleTools, ...transactionTools, ...userTools].map((tool) => [
    tool.name,
    tool,
  ]),
);
