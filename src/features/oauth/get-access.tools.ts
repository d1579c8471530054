import { z } from 'zod';
import { defineTool } from '../../api/mcp/kit/tool.ts';
import { uuid } from '../../lib/fields.ts';

/** Returns who calls. */
export const getAccess = defineTool({
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
