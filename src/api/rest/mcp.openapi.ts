import { z } from 'zod';
import { PERMISSIONS } from '../../access/identity/permissions.rules.ts';
import { type DocumentedSchemas, uri } from '../openapi/operation.ts';

/** What MCP adds to the OpenAPI document. */
export const mcpSchemas: DocumentedSchemas = {
  outputs: {
    ResourceMetadata: z.strictObject({
      resource: uri(),
      authorization_servers: z.array(uri()),
      scopes_supported: z.array(z.enum(PERMISSIONS)),
      bearer_methods_supported: z.array(z.string()),
      resource_name: z.string(),
    }),
  },
};
