import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSchema } from 'graphql';
import type { Recorder } from './recorder.ts';

const SCHEMA = join(import.meta.dirname, '../../schema');
const METHODS = ['get', 'head', 'post', 'put', 'delete'] as const;

type Operations = Partial<Record<(typeof METHODS)[number], { responses: Record<string, unknown> }>>;

export function schemaFile(name: string): string {
  return readFileSync(join(SCHEMA, name), 'utf8');
}

/** What is documented and was not seen: statuses of operations, root fields, tools; as text for people. */
export function uncovered(recorders: readonly Recorder[]): string {
  const done = recorders.flatMap((recorder) => [...recorder.done.values()]);
  const { paths } = JSON.parse(schemaFile('openapi.json')) as { paths: Record<string, Operations> };
  let [documented, seen] = [0, 0];
  const missing: string[] = [];
  for (const [path, operations] of Object.entries(paths)) {
    const pattern = new RegExp(`^${path.replaceAll(/\{path\}/g, '.+').replaceAll(/\{\w+\}/g, '[^/]+')}(?:\\?.*)?$`);
    for (const method of METHODS) {
      const statuses = Object.keys(operations[method]?.responses ?? {});
      const had = new Set(
        done
          .filter((one) => one.method === method.toUpperCase() && pattern.test(one.path))
          .map(({ status }) => String(status)),
      );
      const lacking = statuses.filter((status) => !had.has(status));
      documented += statuses.length;
      seen += statuses.length - lacking.length;
      if (lacking.length > 0)
        missing.push(`  ${method.toUpperCase().padEnd(6)} ${path.padEnd(52)} ${lacking.join(' ')}`);
    }
  }
  const asked = new Set(recorders.flatMap(({ operations }) => [...operations]));
  const called = new Set(recorders.flatMap(({ tools }) => [...tools]));
  const schema = buildSchema(schemaFile('schema.graphql'));
  const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
  const fields = roots.flatMap((type) => Object.keys(type?.getFields() ?? {}).map((field) => `${type?.name}.${field}`));
  const { tools } = JSON.parse(schemaFile('tools.json')) as { tools: { name: string }[] };
  const left = (all: readonly string[], had: ReadonlySet<string>) =>
    all.filter((one) => !had.has(one)).join(', ') || 'none';
  return [
    `${done.length} exchanges; ${seen} of ${documented} documented statuses of operations; not seen:`,
    ...missing,
    `GraphQL root fields not asked for (of ${fields.length}): ${left(fields, asked)}`,
    `tools not called (of ${tools.length}): ${left(
      tools.map(({ name }) => name),
      called,
    )}`,
    '',
  ].join('\n');
}
