import { z } from 'zod';
import { REQUIRED_BY_ROLES, REQUIRED_IN_PRODUCTION, SECRET_VARIABLES } from '../src/platform/config/config.ts';
import { type About, GROUPS } from '../src/platform/config/variables.ts';

const TITLES: Record<keyof typeof GROUPS, string> = {
  process: 'The process and its listeners',
  stores: 'Stores',
  secrets: 'Secrets and credentials',
  features: 'Services and limits',
  telemetry: 'Traces',
};

const HEAD = `# Configuration

Generated from \`src/platform/config\` by \`npm run -s schema\`. Portcullis reads these environment variables. An empty variable counts as unset.

If the configuration is invalid, a start exits with code 78 and one message that lists every error. \`bin/portcullis config check\` prints the same message
without connecting to anything.

- **required**: where a start fails without the variable: in production (\`NODE_ENV=production\`), or outside production with the role \`gateway\` or
  \`worker\` (*roles*).
- **read by**: the role that uses the variable. Production requires the secrets of every role, so that all processes have the same configuration.
- **●**: a secret. It appears in no message, log or listing. It can be in a file instead, as Docker and Kubernetes mount secrets: \`NAME_FILE\` is the path, and
  a byte order mark at the start of the file and one line break at its end are ignored.

A variable whose name differs from one of these only by case or underscores is ignored, with a warning.

\`gateway.yaml\` lists what callers can reach ([operations](operations/remote-services.md)).
`;

const TAIL = `
## Other variables

| variable | meaning |
|---|---|
| the name in \`transactions_lookup.bearer_env\` of \`gateway.yaml\` | the bearer token for the owner of transactions, or with \`_FILE\` the file that has it; \`all\` and \`worker\` refuse to start without it |
| \`NODE_EXTRA_CA_CERTS\` | a file of private certificate authorities that Node trusts in addition to its own |
| \`UV_THREADPOOL_SIZE\` | Node's threads for password hashing, files and name resolution; default: one for each core but one to hash passwords, and four more |
`;

type Shape = Readonly<Record<string, z.ZodType>>;

/** Fits no form that is worth naming. */
const MISFIT = '?:';

/**
 * The text of docs/configuration.md.
 * @throws Error that names the first variable without a description.
 */
export function configurationPage(groups: Record<keyof typeof GROUPS, Shape> = GROUPS): string {
  const names = Object.keys(TITLES) as (keyof typeof GROUPS)[];
  return HEAD + names.map((name) => section(TITLES[name], groups[name])).join('') + TAIL;
}

function section(title: string, shape: Shape): string {
  const lines = Object.entries(shape).map(([name, schema]) => line(name, schema));
  return `
## ${title}

| variable | meaning | form | default | required | read by |
|---|---|---|---|---|---|
${lines.join('\n')}
`;
}

function line(name: string, schema: z.ZodType): string {
  const about = z.globalRegistry.get(schema) as About | undefined;
  if (about?.description === undefined)
    throw new Error(`${name} has no description in src/platform/config/variables.ts`);
  const mark = SECRET_VARIABLES.has(name) ? ' ●' : '';
  const cells = [`\`${name}\`${mark}`, about.description, form(schema), defaultOf(schema, about), required(name)];
  return `| ${[...cells, about.role ?? 'both'].map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

/** What the schema answers to a value that is none. */
function form(schema: z.ZodType): string {
  const { error } = schema.safeParse(MISFIT);
  return error?.issues[0]?.message ?? 'text';
}

function defaultOf(schema: z.ZodType, { unset = 'none' }: About): string {
  const value = schema.parse(undefined);
  if (value === undefined) return unset;
  return value === '' ? 'empty' : `\`${value}\``;
}

function required(name: string): string {
  const everywhere: readonly string[] = REQUIRED_IN_PRODUCTION;
  const byRoles: readonly string[] = REQUIRED_BY_ROLES;
  if (byRoles.includes(name)) return 'production, roles';
  return everywhere.includes(name) ? 'production' : '';
}
