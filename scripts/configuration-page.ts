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

Generated from the schema in \`src/platform/config\` by \`npm run -s schema\`: what stands here is what a start validates.

Every variable of the environment that the product reads, and what holds without it. A variable that is set to nothing is one that is not set.
A start whose configuration cannot be ends with exit code 78 and one message that lists every fault; \`bin/portcullis config check\` says the same
and connects to nothing. *Required* names where a start refuses to go without: in production (\`NODE_ENV=production\`), and, outside it, in the roles
\`gateway\` and \`worker\`. *Read by* names the role that uses a variable; production requires the secrets of every role, so that replicas are
configured alike. Values of variables marked ● are in no message, log or listing, and each can be in a file instead, as Docker and Kubernetes mount secrets: \`NAME_FILE\` names the file,
of which one line break at its end is left out. A variable whose name differs from one of these by case or underscores alone is not read, and is warned of.

What the outside can reach is in \`gateway.yaml\` ([operations](operations/remote-services.md)).
`;

const TAIL = `
## Variables that others read

| variable | meaning |
|---|---|
| the name in \`transactions_lookup.bearer_env\` of \`gateway.yaml\` | the bearer token for the owner of transactions, or with \`_FILE\` the file that has it; \`all\` and \`worker\` refuse to start without it |
| \`NODE_EXTRA_CA_CERTS\` | a file of private certificate authorities that Node trusts beside its own |
| \`UV_THREADPOOL_SIZE\` | Node's threads for passwords, files and names; unset: four more than passwords are hashed at once, which is one for each core but one |
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
