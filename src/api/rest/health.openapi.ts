import { z } from 'zod';
import type { HealthReport } from '../../platform/health.ts';
import type { DocumentedSchemas } from '../openapi/operation.ts';

const state = () => z.enum(['ok', 'down']);

/** What health adds to the OpenAPI document. */
export const healthSchemas: DocumentedSchemas = {
  outputs: {
    Health: z.strictObject({
      status: z.enum(['ok', 'degraded', 'down']),
      version: z.string(),
      uptime: z.int().min(0).meta({ description: 'Seconds since the start.' }),
      checks: z.strictObject({ database: state(), cache: state(), bus: state(), audit: z.enum(['ok', 'full']) }),
    }) satisfies z.ZodType<HealthReport>,
  },
};
