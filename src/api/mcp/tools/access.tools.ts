import { z } from 'zod';
import { uuid } from '../kit/list-tools.ts';
import { defineTool } from '../kit/tool.ts';

export const accessTools = [
  defineTool({
    name: 'get_access',
    title: 'Who am I',
    description:
      'Returns the node (tenant) that all tools work on, the calling client and its scopes. Call it first if you are unsure what you may do, or after a forbidden.',
    input: z.object({}),
    output: z.strictObject({
      node_id: uuid(),
      client_id: uuid(),
      client_name: z.string(),
      scopes: z.array(z.string()).meta({ description: 'The scopes of the client, such as accounts:read.' }),
    }),
    run: async (_input, { caller: { nodeId, clientId, clientName, permissions } }) => ({
      node_id: nodeId,
      client_id: clientId,
      client_name: clientName,
      scopes: [...permissions],
    }),
  }),
];
