import { z } from 'zod';
import { PLAIN_URL } from './service-config.ts';

/** Where the service is that knows whose a transaction is; `transactions_lookup` of `gateway.yaml`. */
export const lookupSchema = z.strictObject({
  url: z
    .string()
    .regex(PLAIN_URL, { error: 'must be an http or https URL without user and query', abort: true })
    .refine((text) => URL.canParse(text), 'must be a URL')
    .transform((text) => text.replace(/\/+$/, ''))
    .meta({ description: 'GET {url}/{id} tells whose a transaction is; the id is percent-encoded.' }),
  timeout_ms: z.int().min(1).max(60_000).default(5_000).meta({
    description: 'How long an answer may take, to its last byte.',
  }),
  bearer_env: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of a variable')
    .optional()
    .meta({ description: 'The variable whose value is sent as the bearer token.' }),
});

export type LookupConfig = Readonly<z.output<typeof lookupSchema>>;

const TOKEN = /^[\x21-\x7e]+$/;

/** What the variable must be that `transactions_lookup` names: its faults, none where it is good. */
export function lookupFaults(lookup: LookupConfig | undefined, variables: NodeJS.ProcessEnv): string[] {
  const name = lookup?.bearer_env;
  if (name === undefined) return [];
  const value = variables[name];
  if (value === undefined || value === '') return [`${name} is missing: transactions_lookup in gateway.yaml names it`];
  return TOKEN.test(value) ? [] : [`${name} must be a token of visible ASCII characters`];
}
